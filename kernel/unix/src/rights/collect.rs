//! Closing sockets that nobody can receive any more (`inflight`).
//!
//! The graph of what is under way lies behind one lock; a search looks at a part of it at a
//! time. It is due when a Unix socket is closed, which may have been the last way to others,
//! and when a user has reached the limit. So that closing stays cheap while much is under way, a
//! search waits until as many sockets were closed as there is to look at, by a constant factor.
//!
//! What is found can only be reached from here: emptying its queues drops the references
//! that keep it. That may block, so it is done in ordinary context, without a spin lock.
//!
//! Lock order: the graph's lock is innermost.

use alloc::collections::BTreeMap;
use alloc::sync::{Arc, Weak};
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use inflight::{Graph, Progress, Search, SocketId, Standing};
use mach::sync::Spin;
use sched::resched_point;

use crate::list;
use vfs::file::OpenFile;
use vfs::socket::Family;

/// Sockets and edges that are looked at under one hold of the lock.
const STEP: usize = 128;
/// Sockets that closing one pays for.
const CREDIT: usize = 16;
/// Searches that a change made void, before the next one waits for its time.
const ATTEMPTS: usize = 4;

struct State {
    graph: Graph,
    /// The open files of sockets that are under way.
    descriptions: BTreeMap<SocketId, Weak<OpenFile>>,
    /// Connections that wait to be accepted, and who listens.
    waiting: BTreeMap<SocketId, SocketId>,
}

/// A circle of sockets in each other's queues may lead through all programs.
static STATE: Spin<State> = Spin::new(State {
    graph: Graph::new(),
    descriptions: BTreeMap::new(),
    waiting: BTreeMap::new(),
});
/// How much may be sent until the next search, by all together.
static CREDITS: AtomicUsize = AtomicUsize::new(0);
/// One search at a time.
static IS_RUNNING: AtomicBool = AtomicBool::new(false);

/// The number of the Unix socket that is open; `None` if it is something else.
fn number(file: &OpenFile) -> Option<SocketId> {
    let socket = file.file.as_socket()?;
    if socket.family() != Family::Unix {
        return None;
    }
    Some(socket.metadata().ok()?.number)
}

/// A message is made that carries `file`.
pub(super) fn take_up(file: &Arc<OpenFile>) {
    if let Some(socket) = number(file) {
        let mut state = STATE.lock();
        state.graph.take_up(socket);
        state.descriptions.insert(socket, Arc::downgrade(file));
    }
}

/// The message comes to lie in the queue of `holder`.
pub(super) fn put(holder: SocketId, file: &OpenFile) {
    if let Some(socket) = number(file) {
        STATE.lock().graph.put(holder, socket);
    }
}

/// The message, which lies in the queue of `holder` or nowhere, is no more.
pub(super) fn lay_down(holder: Option<SocketId>, file: &OpenFile) {
    let Some(socket) = number(file) else { return };
    let mut state = STATE.lock();
    if let Some(holder) = holder {
        state.graph.pull(holder, socket);
    }
    if state.graph.lay_down(socket) == 0 {
        state.descriptions.remove(&socket);
    }
}

/// Somebody gets what a message carries and leaves it where it is.
pub(super) fn note_peek() {
    STATE.lock().graph.note_peek();
}

/// A connection waits to be accepted.
pub(crate) fn wait_for(connection: SocketId, listener: SocketId) {
    STATE.lock().waiting.insert(connection, listener);
}

/// It waits no longer.
pub(crate) fn end_wait(connection: SocketId) {
    STATE.lock().waiting.remove(&connection);
}

/// A Unix socket was closed. No spin lock is held.
pub(crate) fn note_close() {
    let size = STATE.lock().graph.len();
    if size != 0 && CREDITS.fetch_add(CREDIT, Ordering::Relaxed) + CREDIT >= size {
        run();
    }
}

/// Closes what nobody can receive. No spin lock is held.
pub(super) fn run() {
    if IS_RUNNING.swap(true, Ordering::Acquire) {
        return;
    }
    CREDITS.store(0, Ordering::Relaxed);
    for _ in 0..ATTEMPTS {
        if let Some(garbage) = search() {
            close(&garbage);
            break;
        }
    }
    IS_RUNNING.store(false, Ordering::Release);
}

/// What nobody can receive; `None` if something changed meanwhile.
fn search() -> Option<alloc::vec::Vec<SocketId>> {
    let mut search = Search::new(&STATE.lock().graph);
    loop {
        let progress = {
            let state = STATE.lock();
            search.step(&state.graph, STEP, |socket| state.standing(socket))
        };
        match progress {
            Progress::More => resched_point(),
            Progress::Void => return None,
            Progress::Done(garbage) => return Some(garbage),
        }
    }
}

impl State {
    fn standing(&self, socket: SocketId) -> Standing {
        if let Some(&listener) = self.waiting.get(&socket) {
            return Standing::Waiting(listener);
        }
        // Whom no message carries is not garbage: its own queue ends with it.
        let description = self.descriptions.get(&socket);
        Standing::Referred(description.map_or(1, Weak::strong_count))
    }
}

/// Empties the queues of these sockets, and with that ends them.
fn close(garbage: &[SocketId]) {
    for socket in garbage {
        let description = STATE.lock().descriptions.get(socket).cloned();
        let Some(open) = description.and_then(|description| description.upgrade()) else {
            continue;
        };
        if let Some(endpoint) = list::find(*socket) {
            endpoint.empty();
        }
        // What is left of it goes when its queues are empty.
        drop(open);
        resched_point();
    }
}
