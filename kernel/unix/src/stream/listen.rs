//! A listening socket's queue: connections that wait to be accepted.
//!
//! A connection is complete before it is accepted: its client may send at once. A client
//! reserves a place, connects without the lock, then takes its place.

use alloc::collections::VecDeque;
use alloc::sync::Arc;

use mach::mem::fallible::TryPush;
use mach::sync::Spin;
use sync::poll::Events;
use sync::{Error, Result};

use super::StreamSocket;
use crate::rights::collect;
use sockets::limits;
use vfs::socket::{Blocking, PeerIdentity};

struct Queue {
    waiting: VecDeque<Arc<StreamSocket>>,
    reserved: usize,
    limit: usize,
    is_closed: bool,
}

/// What a socket has that listens.
pub(super) struct Listener {
    queue: Spin<Queue>,
    /// Who called listen: what clients see as their peer.
    pub(super) program: PeerIdentity,
}

impl Listener {
    pub(super) fn new(program: PeerIdentity) -> Self {
        let queue = Queue {
            waiting: VecDeque::new(),
            reserved: 0,
            limit: 0,
            is_closed: false,
        };
        Self {
            queue: Spin::new(queue),
            program,
        }
    }

    pub(super) fn set_limit(&self, backlog: u32) {
        self.queue.lock().limit = limits::backlog(backlog);
    }

    /// Connections that wait, and how many may.
    pub(super) fn lengths(&self) -> [usize; 2] {
        let queue = self.queue.lock();
        [queue.waiting.len(), queue.limit]
    }

    pub(super) fn poll(&self) -> Events {
        let queue = self.queue.lock();
        match (queue.is_closed, queue.waiting.is_empty()) {
            (true, _) => Events::READABLE | Events::RDHUP,
            (false, true) => Events::empty(),
            (false, false) => Events::READABLE,
        }
    }

    /// Connects `client` to the listening `socket`, waiting for a place in the queue.
    ///
    /// Errors: `ConnectionRefused` once the socket is closed, `WouldBlock`.
    pub(super) fn connect(
        &self,
        socket: &StreamSocket,
        client: &StreamSocket,
        blocking: Blocking,
    ) -> Result<()> {
        while !self.reserve()? {
            let how = client.options.send_wait(blocking);
            let has_place = || (!self.is_full()).then_some(());
            socket
                .pollee
                .queue
                .wait(how.ok_or(Error::WouldBlock)?, has_place)?;
        }
        let server = match client.is_connected() {
            true => Err(Error::IsConnected),
            false => client.connect_to(socket, self),
        };
        let taken = self.take_place(server);
        match taken {
            Ok(()) => socket.pollee.notify(Events::READABLE),
            // The place is free for another one that waits.
            Err(_) => socket.pollee.queue.wake_all(),
        }
        taken
    }

    fn reserve(&self) -> Result<bool> {
        let mut queue = self.queue.lock();
        if queue.is_closed {
            return Err(Error::ConnectionRefused);
        }
        let has_place = !queue.is_full();
        queue.reserved += usize::from(has_place);
        Ok(has_place)
    }

    fn is_full(&self) -> bool {
        let queue = self.queue.lock();
        queue.is_full() && !queue.is_closed
    }

    /// Uses a reserved place, or gives it back.
    fn take_place(&self, server: Result<Arc<StreamSocket>>) -> Result<()> {
        let mut queue = self.queue.lock();
        queue.reserved -= 1;
        if !queue.is_closed {
            queue.waiting.try_push(server?)?;
            return Ok(());
        }
        drop(queue);
        server.map(drop)
    }

    /// Takes the connection that has waited longest.
    ///
    /// Errors: `Invalid` if none waits and none will come.
    pub(super) fn accept(
        &self,
        socket: &StreamSocket,
        blocking: Blocking,
    ) -> Result<Arc<StreamSocket>> {
        let next = || match self.pop(socket) {
            None if self.queue.lock().is_closed => Some(Err(Error::Invalid)),
            first => first.map(Ok),
        };
        if let Some(first) = next() {
            return first;
        }
        let how = socket.options.receive_wait(blocking);
        socket
            .pollee
            .queue
            .wait(how.ok_or(Error::WouldBlock)?, next)?
    }

    /// No more will come (shutdown); those that wait can be accepted.
    pub(super) fn refuse(&self, socket: &StreamSocket) {
        self.queue.lock().is_closed = true;
        socket.pollee.notify(Events::READABLE | Events::RDHUP);
    }

    fn pop(&self, socket: &StreamSocket) -> Option<Arc<StreamSocket>> {
        let mut queue = self.queue.lock();
        let was_full = queue.is_full();
        let first = queue.waiting.pop_front();
        drop(queue);
        if let Some(connection) = &first {
            collect::end_wait(connection.number);
        }
        if was_full {
            socket.pollee.queue.wake_all();
        }
        first
    }

    /// Nobody will accept any more: those who wait are refused, connections are reset.
    pub(super) fn close(&self, socket: &StreamSocket) {
        let waiting = {
            let mut queue = self.queue.lock();
            queue.is_closed = true;
            core::mem::take(&mut queue.waiting)
        };
        waiting.iter().for_each(|connection| connection.refuse());
        drop(waiting);
        socket.pollee.queue.wake_all();
    }
}

impl Queue {
    /// Linux lets one more wait than asked for.
    fn is_full(&self) -> bool {
        self.waiting.len() + self.reserved > self.limit
    }
}
