//! From entries to requests: room first, then the entry, then its place in a chain.

use alloc::sync::Arc;

use mach::mem::fallible::TryGrow;
use sync::{Error, Result};
use task::Thread;
use uring::{Link, Next, Operation, SqeFlags, Turn};
use vfs::file::transfer::Begun;

use crate::request::{Ending, Request};
use crate::ring::Ring;
use crate::submitter::Submitter;

/// Requests that a ring may have under way, with the completions that wait for room.
pub(crate) const REQUESTS_MAX: usize = 65_536;

/// Requests that follow each other, as far as their entries have been taken.
#[derive(Default)]
struct Chain {
    members: Option<(Arc<Request>, Arc<Request>)>,
    is_broken: bool,
    is_drain: bool,
}

impl Chain {
    /// Adds a request; the whole chain if that ends it.
    fn add(&mut self, request: Arc<Request>) {
        self.is_broken |= request.ending() == Ending::Invalid;
        self.is_drain |= request.has(SqeFlags::IO_DRAIN);
        self.members = Some(match self.members.take() {
            None => (request.clone(), request),
            Some((first, last)) => {
                last.progress.lock().next = Some(request.clone());
                (first, request)
            }
        });
    }

    fn is_empty(&self) -> bool {
        self.members.is_none()
    }
}

impl Ring {
    /// Takes up to `count` entries, for `submitter` to run; returns how many.
    ///
    /// Errors: `WouldBlock` if there is no room for a single one now.
    pub fn submit(
        self: &Arc<Self>,
        thread: &Thread,
        submitter: &Arc<Submitter>,
        count: u32,
    ) -> Result<u32> {
        submitter.note_ring(self).map_err(|_| Error::WouldBlock)?;
        let mut queue = self.submissions.lock();
        let mut chain = Chain::default();
        let mut begun = Begun::default();
        let mut taken = 0;
        while taken < count {
            if queue.pending(&*self.rings) == 0 {
                break;
            }
            let Next::Entry(sqe) = queue.take(&*self.rings, &*self.sqes) else {
                break;
            };
            if chain.is_empty() && self.begin(thread, &sqe, &mut begun) {
                taken += 1;
                continue;
            }
            if self.reserve(submitter).is_err() {
                queue.put_back(&*self.rings);
                break;
            }
            let Ok(request) = Request::new(self, submitter, sqe) else {
                self.state.lock().completions.release();
                queue.put_back(&*self.rings);
                break;
            };
            taken += 1;
            self.register(&request);
            if !self.place(&mut chain, request) && !self.setup.submits_all {
                break;
            }
            // A queue of thousands is taken in with others in between.
            sched::resched_point();
        }
        self.launch(chain);
        match taken {
            0 if count > 0 && queue.pending(&*self.rings) > 0 => Err(Error::WouldBlock),
            taken => Ok(taken),
        }
    }

    /// Puts a request into the chain, which starts if that was its end; whether it was valid.
    fn place(&self, chain: &mut Chain, request: Arc<Request>) -> bool {
        // A limit of time needs something to limit.
        if chain.is_empty() && matches!(request.operation, Operation::LinkTimeout { .. }) {
            request.mark(Ending::Invalid);
        }
        let is_valid = request.ending() != Ending::Invalid;
        let ends = request.link() == Link::None;
        chain.add(request);
        if ends {
            self.launch(core::mem::take(chain));
        }
        is_valid
    }

    /// Makes room for all that one more request may need.
    fn reserve(&self, submitter: &Submitter) -> Result<()> {
        submitter.reserve()?;
        self.requests.lock().make_room(1)?;
        let mut state = self.state.lock();
        let no_memory = |_| Error::OutOfMemory;
        state.drain.reserve().map_err(no_memory)?;
        if state.completions.owed() >= REQUESTS_MAX {
            return Err(Error::OutOfMemory);
        }
        state.completions.reserve().map_err(no_memory)
    }

    /// The whole chain is there: its first request starts, or waits for a drain.
    fn launch(&self, chain: Chain) {
        let Some((first, last)) = chain.members else {
            return;
        };
        last.is_last
            .store(true, core::sync::atomic::Ordering::SeqCst);
        if chain.is_broken {
            break_off(&first);
        }
        let turn = self.state.lock().drain.submit(first, chain.is_drain);
        if let Turn::Start(first) = turn {
            first.start();
        }
    }
}

/// One of the chain is invalid: none runs.
fn break_off(first: &Arc<Request>) {
    let mut member = Some(first.clone());
    while let Some(request) = member {
        request.mark(Ending::Cancelled);
        member = request.progress.lock().next.clone();
    }
}
