//! Where a thread finds how its request ended.

use alloc::sync::Arc;

use block::{Done, Failure};
use mach::sync::Spin;
use sched::Entity;

struct State<T> {
    ended: Option<(Result<Done, Failure>, T)>,
    thread: Option<Arc<Entity>>,
}

/// One thread's at a time, filled once: how its request ended, and what came with it.
pub(crate) struct Outcome<T>(Spin<State<T>>);

impl<T> Outcome<T> {
    pub(crate) const fn new() -> Self {
        Self(Spin::new(State {
            ended: None,
            thread: None,
        }))
    }

    /// This thread is going to wait.
    pub(crate) fn prepare(&self) {
        self.0.lock().thread = Some(sched::current_counted());
    }

    /// It does not have to after all.
    pub(crate) fn forget(&self) {
        self.0.lock().thread = None;
    }

    /// Takes the end, if it is there.
    pub(crate) fn take(&self) -> Option<(Result<Done, Failure>, T)> {
        self.0.lock().ended.take()
    }

    /// Whether it is there.
    pub(crate) fn is_there(&self) -> bool {
        self.0.lock().ended.is_some()
    }

    /// The request has ended; its thread wakes.
    pub(crate) fn fill(&self, result: Result<Done, Failure>, with: T) {
        let thread = {
            let mut state = self.0.lock();
            state.ended = Some((result, with));
            state.thread.take()
        };
        if let Some(thread) = thread {
            sched::wake(&thread);
        }
    }

    /// Its thread wakes to look at the device.
    pub(crate) fn wake(&self) {
        let thread = self.0.lock().thread.clone();
        if let Some(thread) = thread {
            sched::wake(&thread);
        }
    }
}
