//! Ending requests before they are done.

use alloc::sync::Arc;

use uring::Key;

use crate::request::{Ending, Request};
use crate::ring::Ring;
use crate::submitter::Submitter;

impl Ring {
    /// One request that is meant, whose turn has come and that is not yet to end.
    pub fn find(&self, is_meant: impl Fn(&Request) -> bool) -> Option<Arc<Request>> {
        let requests = self.requests.lock();
        let is_live =
            |one: &&Arc<Request>| one.is_started() && one.ending() == Ending::None && is_meant(one);
        requests.iter().find(is_live).cloned()
    }

    /// Cancels what `key` means but `except`: the first, or all of them; how many.
    pub fn cancel(&self, key: &Key, except: &Request, is_all: bool) -> usize {
        let requests = self.requests.lock();
        let is_meant = |one: &&Arc<Request>| {
            one.is_started() && !core::ptr::eq(&***one, except) && key.means(&one.facts())
        };
        let cancel = |one: &&Arc<Request>| one.end(Ending::Cancelled);
        let limit = if is_all { usize::MAX } else { 1 };
        let meant = requests.iter().filter(is_meant).filter(cancel);
        meant.take(limit).count()
    }

    /// Cancels all that a thread submitted: it will not be there to do it.
    pub fn cancel_of(&self, submitter: &Submitter) {
        self.cancel_where(|one| one.submitter.is(submitter));
    }

    /// Cancels everything: nobody can ask for it any more.
    pub fn cancel_everything(&self) {
        self.cancel_where(|_| true);
    }

    fn cancel_where(&self, is_meant: impl Fn(&Request) -> bool) {
        for one in self.requests.lock().iter().filter(|one| is_meant(one)) {
            one.end(Ending::Cancelled);
        }
        // Those that wait for a drain would wait on.
        while let Some(waiting) = {
            let mut state = self.state.lock();
            state.drain.take_waiting(|one| is_meant(one))
        } {
            waiting.start();
        }
    }
}
