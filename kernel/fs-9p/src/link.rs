//! Requests under way, and the threads that sleep until they are answered.
//!
//! A thread submits under the spin lock and gets a ticket; whoever completes (the
//! interrupt's softirq, or another thread that looks) moves answers from the channel to
//! their tickets and wakes everybody. Tags are reused at once, tickets never.

use alloc::boxed::Box;
use alloc::vec::Vec;

use accounting::{Load, Served};
use mach::sync::Spin;
use ninep::{Channel, Request, SubmitError, Tag};
use sync::{Error, Result, Wait, WaitQueue};

use super::answer::Answer;

/// A channel that threads share.
pub(super) struct Link {
    state: Spin<State>,
    waiters: WaitQueue,
}

struct State {
    channel: Box<dyn Channel + Send>,
    next_ticket: u64,
    under_way: Vec<(Tag, u64)>,
    answers: Vec<(u64, Result<Answer>)>,
    load: Load,
    full: u64,
    failed: u64,
}

/// What a channel has done so far.
pub(super) struct Figures {
    pub name: Vec<u8>,
    pub served: Served,
    /// Requests that had to wait until a tag was free.
    pub full: u64,
    /// Requests that the device did not take.
    pub failed: u64,
}

impl Link {
    pub(super) fn new(channel: Box<dyn Channel + Send>) -> Self {
        let state = State {
            channel,
            next_ticket: 0,
            under_way: Vec::new(),
            answers: Vec::new(),
            load: Load::new(),
            full: 0,
            failed: 0,
        };
        Self {
            state: Spin::new(state),
            waiters: WaitQueue::new(),
        }
    }

    pub(super) fn is_called(&self, tag: &[u8]) -> bool {
        self.state.lock().channel.name() == tag
    }

    pub(super) fn figures(&self) -> Figures {
        let mut state = self.state.lock();
        Figures {
            name: state.channel.name().to_vec(),
            served: state.load.read(mach::time::now().as_nanos()),
            full: state.full,
            failed: state.failed,
        }
    }

    /// The largest message.
    pub(super) fn msize(&self) -> usize {
        self.state.lock().channel.msize()
    }

    /// Sends `request` and sleeps until it is answered, whatever signals come.
    pub(super) fn call(&self, request: &Request<'_>) -> Result<Answer> {
        let ticket = self
            .waiters
            .wait(Wait::UNINTERRUPTIBLE, || self.submit(request))??;
        self.waiters
            .wait(Wait::UNINTERRUPTIBLE, || self.take(ticket))?
    }

    /// A ticket; `None` while all tags are in use.
    fn submit(&self, request: &Request<'_>) -> Option<Result<u64>> {
        let mut state = self.state.lock();
        match state.channel.submit(request) {
            Ok(tag) => {
                let ticket = state.next_ticket;
                state.next_ticket += 1;
                state.under_way.push((tag, ticket));
                state.load.begin(mach::time::now().as_nanos());
                Some(Ok(ticket))
            }
            Err(SubmitError::Busy) => {
                state.full += 1;
                None
            }
            Err(error) => {
                state.failed += 1;
                Some(Err(match error {
                    SubmitError::NoMemory => Error::OutOfMemory,
                    SubmitError::TooLarge => Error::NameTooLong,
                    SubmitError::Busy | SubmitError::Broken => Error::Io,
                }))
            }
        }
    }

    /// The answer to `ticket`; looks at the device as well, so that a reply which came
    /// before its interrupt was asked for is not slept on.
    fn take(&self, ticket: u64) -> Option<Result<Answer>> {
        self.complete();
        let mut state = self.state.lock();
        let at = state
            .answers
            .iter()
            .position(|(owner, _)| *owner == ticket)?;
        Some(state.answers.swap_remove(at).1)
    }

    /// Takes what the device has answered and asks for an interrupt at the next answer.
    pub(super) fn complete(&self) {
        if self.state.lock().complete() {
            self.waiters.wake_all();
        }
    }
}

impl State {
    fn complete(&mut self) -> bool {
        let Self {
            channel,
            under_way,
            answers,
            load,
            ..
        } = self;
        let now_ns = mach::time::now().as_nanos();
        let mut any = false;
        loop {
            channel.complete(&mut |tag, reply| {
                if let Some(at) = under_way.iter().position(|(owner, _)| *owner == tag) {
                    let (_, ticket) = under_way.swap_remove(at);
                    answers.push((ticket, Answer::of(reply)));
                    load.end(now_ns);
                    any = true;
                }
            });
            if !channel.arm() {
                return any;
            }
        }
    }
}
