//! Sends without a copy (MSG_ZEROCOPY), and how a program hears that they are over.
//!
//! # Problem
//! A program that lends its pages to a connection must know when the peer has them, so that
//! it may change them. It sends often, and does not want to ask for each send.
//!
//! # Idea
//! Each send has a [`Ticket`], which every page on its way holds ([`Pinned`]). When the last
//! of them has been given back, the send's number joins those that are over: a range of numbers,
//! which MSG_ERRQUEUE shows. A page is one owner more of its frame, so it outlives munmap(2),
//! execve(2) and exit(2), and a store after fork(2) goes to a copy.
//!
//! Sends to ourselves are copied, for a receiver that does not read could keep the pages for
//! ever; so is memory that has no page to lend. What was copied says so.
//!
//! # Bounds
//! [`TICKETS_MAX`] sends of a socket that are under way or not heard of. The pages are as many as
//! the send buffer allows.
//!
//! Lock order: a shard or a ring, then `state`, which is innermost.
//! Not here: UDP.

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, Ordering};

use mach::mem::Pinned;
use mach::sync::{Once, Spin};
use mbuf::{Chain, Mbuf};
use mm::io::Source;
use sync::poll::Events;
use sync::{Error, Result};

use net::stack::waiter::Waiter;
use vfs::socket::SendsOver;

/// Sends that are not over or not heard of: about as many as Linux's net.core.optmem_max allows.
const TICKETS_MAX: usize = 128;
/// Bytes that are lent at a time.
const STRETCH_BYTES: usize = 64 << 10;

/// The sends without a copy of one socket.
pub(crate) struct Completions {
    /// Whether the program asks for such sends (SO_ZEROCOPY).
    is_on: AtomicBool,
    state: Spin<State>,
    waiter: Arc<Waiter>,
}

struct State {
    /// The number of the next send.
    next: u32,
    /// Tickets that somebody holds.
    under_way: usize,
    /// Has room for all of them.
    over: VecDeque<SendsOver>,
}

impl Completions {
    /// None yet; `waiter` will hear of them.
    pub(crate) fn new(waiter: Arc<Waiter>) -> Arc<Self> {
        Arc::new(Self {
            is_on: AtomicBool::new(false),
            state: Spin::new(State {
                next: 0,
                under_way: 0,
                over: VecDeque::with_capacity(TICKETS_MAX),
            }),
            waiter,
        })
    }

    /// Whether the program asks for such sends.
    pub(crate) fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    /// It does from now on, or no more.
    pub(crate) fn turn(&self, on: bool) {
        self.is_on.store(on, Ordering::Relaxed);
    }

    /// A ticket for one send.
    ///
    /// Errors: `NoBuffers` if too many are under way or not heard of.
    pub(crate) fn draw(self: &Arc<Self>) -> Result<Arc<Ticket>> {
        let mut state = self.state.lock();
        if state.under_way + state.over.len() >= TICKETS_MAX {
            return Err(Error::NoBuffers);
        }
        state.under_way += 1;
        drop(state);
        Ok(Arc::new(Ticket {
            of: self.clone(),
            number: Once::new(),
            is_copied: AtomicBool::new(false),
        }))
    }

    /// The next sends that are over.
    pub(crate) fn take(&self) -> Option<SendsOver> {
        self.state.lock().over.pop_front()
    }

    /// `ERR` while there are some.
    pub(crate) fn poll(&self) -> Events {
        match self.state.lock().over.is_empty() {
            true => Events::empty(),
            false => Events::ERR,
        }
    }

    fn finish(&self, number: Option<u32>, is_copied: bool) {
        let mut state = self.state.lock();
        state.under_way -= 1;
        let Some(number) = number else { return };
        state.note(number, is_copied);
        drop(state);
        self.waiter.pollee.notify(Events::ERR);
    }
}

impl State {
    fn note(&mut self, number: u32, is_copied: bool) {
        if let Some(last) = self.over.back_mut()
            && last.last.wrapping_add(1) == number
            && last.is_copied == is_copied
        {
            last.last = number;
            return;
        }
        self.over.push_back(SendsOver {
            first: number,
            last: number,
            is_copied,
        });
    }
}

/// One send; when the last holder drops it, the send is over.
pub(crate) struct Ticket {
    of: Arc<Completions>,
    /// None unless something was sent.
    number: Once<u32>,
    is_copied: AtomicBool,
}

impl Ticket {
    /// Something was sent: it is the next send. The caller still holds the ticket.
    pub(crate) fn count(&self) {
        let mut state = self.of.state.lock();
        let number = state.next;
        state.next = number.wrapping_add(1);
        drop(state);
        self.number.call_once(|| number);
    }

    /// Some of it is copied after all.
    pub(crate) fn note_copy(&self) {
        self.is_copied.store(true, Ordering::Relaxed);
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let is_copied = self.is_copied.load(Ordering::Relaxed);
        self.of.finish(self.number.get().copied(), is_copied);
    }
}

/// Takes the next bytes of `from` as they lie in the program's pages: a stretch of them, up to
/// one that cannot be lent; empty if that is the first. May block.
pub(crate) fn lend(from: &mut Source<'_>, ticket: &Arc<Ticket>) -> Result<Chain> {
    let mut lent = Chain::new();
    while lent.len() < STRETCH_BYTES {
        let (page, place) = match from.next_page() {
            Ok(Some(next)) => next,
            Err(error) if lent.is_empty() => return Err(error),
            Ok(None) | Err(_) => break,
        };
        let Some(mut part) = Pinned::new(page, ticket.clone()).and_then(Mbuf::lent) else {
            break;
        };
        part.advance(place.start);
        part.truncate(place.len());
        from.skip(place.len());
        lent.push_back(part);
    }
    Ok(lent)
}
