//! Requests under way, and the threads that sleep until they are answered.
//!
//! A thread submits under the spin lock and gets a ticket; whoever completes (the
//! interrupt's softirq, or another thread that looks) moves answers from the carrier to
//! their tickets and wakes everybody. Tags are reused at once, tickets never.

use alloc::vec::Vec;

use accounting::{Load, Served};
use mach::sync::Spin;
use sync::{Error, Result, Wait, WaitQueue};

/// Where a carrier puts its replies: by the tag of the request that each answers.
pub type Replies<'a, A> = &'a mut dyn FnMut(usize, Result<A>);

/// A device that carries requests of one protocol. Nothing here waits.
pub trait Carrier: Send {
    /// What is asked.
    type Request<'a>;
    /// What is answered, owned.
    type Answer: Send;

    /// What the folder is called.
    fn name(&self) -> &[u8];

    /// Sends a request; its tag.
    fn submit(&mut self, request: &Self::Request<'_>) -> core::result::Result<usize, Refused>;

    /// Passes on all replies that have come; the tag of each is free then.
    fn complete(&mut self, replies: Replies<'_, Self::Answer>);

    /// Asks for an interrupt at the next reply. Returns whether replies are waiting
    /// already, for which none may come: complete them and arm again.
    fn arm(&mut self) -> bool;
}

/// Why a carrier did not take a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refused {
    /// All tags are in use.
    Busy,
    /// There is no memory for the message.
    NoMemory,
    /// A message does not hold it.
    TooLarge,
    /// The device broke.
    Broken,
}

/// A carrier that threads share.
pub struct Link<C: Carrier> {
    state: Spin<State<C>>,
    waiters: WaitQueue,
}

struct State<C: Carrier> {
    carrier: C,
    next_ticket: u64,
    /// Which tag has which ticket; `None` if nobody wants its answer.
    under_way: Vec<(usize, Option<u64>)>,
    answers: Vec<(u64, Result<C::Answer>)>,
    load: Load,
    full: u64,
    failed: u64,
}

/// What a carrier has done so far.
pub(crate) struct Figures {
    pub name: Vec<u8>,
    pub served: Served,
    /// Requests that had to wait until a tag was free.
    pub full: u64,
    /// Requests that the device did not take.
    pub failed: u64,
}

impl<C: Carrier> Link<C> {
    /// A link over a device that is up.
    pub fn new(carrier: C) -> Self {
        let state = State {
            carrier,
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

    /// Whether this is the name of its folder.
    pub fn is_called(&self, tag: &[u8]) -> bool {
        self.state.lock().carrier.name() == tag
    }

    /// Asks the carrier itself something.
    pub fn with<T>(&self, ask: impl FnOnce(&C) -> T) -> T {
        ask(&self.state.lock().carrier)
    }

    pub(crate) fn figures(&self) -> Figures {
        let mut state = self.state.lock();
        Figures {
            name: state.carrier.name().to_vec(),
            served: state.load.read(mach::time::now().as_nanos()),
            full: state.full,
            failed: state.failed,
        }
    }

    /// Sends `request` and sleeps until it is answered, whatever signals come.
    pub fn call(&self, request: &C::Request<'_>) -> Result<C::Answer> {
        let ticket = self.waiters.wait(Wait::UNINTERRUPTIBLE, || {
            self.submit(request, |next| Some(core::mem::replace(next, *next + 1)))
        })??;
        let ticket = ticket.ok_or(Error::Io)?;
        self.waiters
            .wait(Wait::UNINTERRUPTIBLE, || self.take(ticket))?
    }

    /// Sends a request whose answer is of no use; sleeps only while all tags are in use.
    pub fn send(&self, request: &C::Request<'_>) -> Result<()> {
        self.waiters.wait(Wait::UNINTERRUPTIBLE, || {
            self.complete();
            self.submit(request, |_| None)
        })??;
        Ok(())
    }

    /// Submits, with the ticket that `give` gives; `None` while all tags are in use.
    fn submit(
        &self,
        request: &C::Request<'_>,
        give: impl FnOnce(&mut u64) -> Option<u64>,
    ) -> Option<Result<Option<u64>>> {
        let mut state = self.state.lock();
        match state.carrier.submit(request) {
            Ok(tag) => {
                let ticket = give(&mut state.next_ticket);
                state.under_way.push((tag, ticket));
                state.load.begin(mach::time::now().as_nanos());
                Some(Ok(ticket))
            }
            Err(Refused::Busy) => {
                state.full += 1;
                None
            }
            Err(refused) => {
                state.failed += 1;
                Some(Err(match refused {
                    Refused::NoMemory => Error::OutOfMemory,
                    Refused::TooLarge => Error::NameTooLong,
                    Refused::Busy | Refused::Broken => Error::Io,
                }))
            }
        }
    }

    /// The answer to `ticket`; looks at the device as well, so that a reply which came
    /// before its interrupt was asked for is not slept on.
    fn take(&self, ticket: u64) -> Option<Result<C::Answer>> {
        self.complete();
        let mut state = self.state.lock();
        let at = state
            .answers
            .iter()
            .position(|(owner, _)| *owner == ticket)?;
        Some(state.answers.swap_remove(at).1)
    }

    /// Takes what the device has answered and asks for an interrupt at the next answer.
    pub(crate) fn complete(&self) {
        if self.state.lock().complete() {
            self.waiters.wake_all();
        }
    }
}

impl<C: Carrier> State<C> {
    fn complete(&mut self) -> bool {
        let Self {
            carrier,
            under_way,
            answers,
            load,
            ..
        } = self;
        let now_ns = mach::time::now().as_nanos();
        let mut any = false;
        loop {
            carrier.complete(&mut |tag, answer| {
                if let Some(at) = under_way.iter().position(|(owner, _)| *owner == tag) {
                    if let (_, Some(ticket)) = under_way.swap_remove(at) {
                        answers.push((ticket, answer));
                    }
                    load.end(now_ns);
                    any = true;
                }
            });
            if !carrier.arm() {
                return any;
            }
        }
    }
}
