//! SYNs that found a listener's accept queue full, until there is room.
//!
//! # Problem
//! A thousand clients come at once and the program's backlog is 511. What is dropped comes again
//! after a second, and then after two, so that a burst of a millisecond is felt for seconds.
//! Some peers do not repeat a SYN at all: passt(1) gives the connection up after ten seconds.
//!
//! # Idea
//! Such a SYN is held, as many as the backlog says. Each accept(2) that makes room answers the
//! next one. For the peer it is as if its SYN had been long on the way, so all that TCP knows of
//! old duplicates (RFC 9293 3.8.3) makes this safe: a peer that has gone answers with a reset.
//!
//! # Invariant
//! No SYN is answered while the connections that are ready or half open fill the queue, so
//! whoever is answered from here finds a place when its acknowledgement comes.
//!
//! # Not here
//! A SYN that opens again what is in TIME_WAIT: the wait has to know at once whether it is over.

use alloc::collections::VecDeque;

use base::{Duration, Instant};

use super::listen::Listener;
use super::segment::Segment;
use super::syn::Syn;
use crate::addr::FourTuple;
use crate::counters::{Count, DropReason};
use crate::env::Env;
use crate::stack::Stack;
use crate::totals::Tally;

/// Peers that repeat a SYN have done it three times by then, and others have given up.
const HELD_MAX: Duration = Duration::from_secs(8);

/// A listener's SYNs, oldest first.
#[derive(Default)]
pub(crate) struct Held {
    syns: VecDeque<(Instant, FourTuple, Syn)>,
    pub(super) count: Tally,
}

impl Held {
    /// Whether listeners of other stacks that a program sees as this one hold some.
    pub fn is_elsewhere(&self) -> bool {
        self.count.all() > self.count.own()
    }
}

impl Listener {
    /// The next SYN for which there is room.
    fn next_held(&mut self) -> Option<(Instant, FourTuple, Syn)> {
        if self.ready.all() + self.half_open.all() > self.backlog {
            return None;
        }
        let next = self.held.syns.pop_front()?;
        self.held.count.sub(1);
        if self.held.syns.is_empty() {
            // A burst is over; its memory is for others.
            self.held.syns = VecDeque::new();
        }
        Some(next)
    }
}

impl Stack {
    /// Holds a SYN for a listener whose queue is full, if there is a place.
    pub(super) fn hold_syn(
        &mut self,
        now: Instant,
        index: u32,
        tuple: FourTuple,
        syn: &Segment,
    ) -> Result<(), DropReason> {
        let listener = self
            .sockets
            .listener_at(index)
            .ok_or(DropReason::NoSocket)?;
        let backlog = listener.backlog;
        let held = &mut listener.held;
        let has_place = held.count.all() < backlog && !self.net.is_heap_short;
        if !has_place || held.syns.try_reserve(1).is_err() {
            return Err(DropReason::AcceptQueueFull);
        }
        held.syns.push_back((now, tuple, Syn::new(syn)));
        held.count.add(1);
        self.net.count(Count::SynsHeld);
        Ok(())
    }

    /// Answers those of a listener's SYNs for which there is room now; whether there were any.
    pub(crate) fn answer_held<E: Env>(&mut self, env: &mut E, index: u32) -> bool {
        let mut has_answered = false;
        while let Some(listener) = self.sockets.listener_at(index)
            && let Some((came, tuple, syn)) = listener.next_held()
        {
            let outcome = self.answer_late(env, index, (came, tuple), &syn);
            has_answered |= outcome.is_ok();
            if let Err(reason) = outcome {
                self.net.drop(reason);
            }
        }
        has_answered
    }

    fn answer_late<E: Env>(
        &mut self,
        env: &mut E,
        index: u32,
        (came, tuple): (Instant, FourTuple),
        syn: &Syn,
    ) -> Result<(), DropReason> {
        if env.now().since(came) > HELD_MAX {
            return Err(DropReason::AcceptQueueFull);
        }
        if self.net.is_known(&tuple) {
            // The peer has repeated it, and that one was answered.
            return Err(DropReason::Unexpected);
        }
        self.open_half(env, index, tuple, &syn.segment(), None)
    }
}
