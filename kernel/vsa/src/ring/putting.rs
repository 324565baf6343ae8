//! Ends of requests become completions.
//!
//! They are put where the end is told, under the lock of a disk's queue, and shown to the program together when
//! the ring goes on: one index for all that an interrupt has brought.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use kernel_block::lent::{self, WHOLE};
use mach::mem::fallible::TryGrow;
use sync::poll::Events;
use sync::{Error, Result};
use vsa::ring::{Completer, Outcome, RingSize};

use super::Ring;
use super::waiting::Waiter;
use crate::pending;

pub(super) struct Putting {
    pub completer: Completer,
    /// Submissions that became several requests.
    split: Vec<Split>,
    pub waiter: Waiter,
}

/// A submission that became several requests.
struct Split {
    left: usize,
    outcome: Outcome,
}

impl Putting {
    /// Errors: `OutOfMemory`.
    pub(super) fn new(size: RingSize) -> Result<Self> {
        let mut split = Vec::new();
        split.make_room(size.entries() as usize)?;
        for _ in 0..size.entries() {
            split.push(Split {
                left: 0,
                outcome: Outcome::Done,
            });
        }
        Ok(Self {
            completer: Completer::new(size),
            split,
            waiter: Waiter::default(),
        })
    }

    /// The tag of a submission's requests, which are so many.
    pub(super) fn split(&mut self, parts: usize) -> u64 {
        // There are as many as submissions under way.
        let mut places = self.split.iter_mut().enumerate();
        let free = places.find(|(_, split)| split.left == 0);
        free.map_or(WHOLE, |(slot, split)| {
            *split = Split {
                left: parts,
                outcome: Outcome::Done,
            };
            slot as u64
        })
    }

    /// How the submission ended, if this was the last of its requests.
    fn settle(&mut self, slot: u64, outcome: Outcome) -> Option<Outcome> {
        let Some(split) = self.split.get_mut(slot as usize) else {
            return Some(outcome);
        };
        if split.outcome == Outcome::Done {
            split.outcome = outcome;
        }
        split.left -= 1;
        (split.left == 0).then_some(split.outcome)
    }
}

impl Ring {
    /// Shows the program what was put, and wakes it if it waits for that.
    pub(super) fn show(&self) {
        let (count, is_awaited, waiter) = {
            let mut putting = self.putting.lock();
            let count = putting.completer.show(&*self.memory);
            if count == 0 {
                return;
            }
            let is_awaited = putting.completer.program_sleeps(&*self.memory);
            (count, is_awaited, putting.waiter.take())
        };
        self.area.count_out(count as usize);
        if let Some(thread) = waiter {
            sched::wake(&thread);
        }
        if is_awaited {
            self.pollee.notify(Events::READABLE);
        }
    }
}

impl Ring {
    /// Its completions are shown when all ends of a queue were told.
    #[inline]
    fn show_later(self: Arc<Self>) {
        if !self.is_pending.load(Ordering::Relaxed) && !self.is_pending.swap(true, Ordering::AcqRel)
        {
            pending::push(self);
        }
    }
}

impl lent::Taker for Ring {
    fn ended(self: Arc<Self>, [cookie, slot]: [u64; 2], result: Result<()>) {
        let outcome = match result {
            Ok(()) => Outcome::Done,
            Err(Error::Unsupported) => Outcome::Unknown,
            Err(_) => Outcome::Failed,
        };
        {
            let mut putting = self.putting.lock();
            let Some(outcome) = putting.settle(slot, outcome) else {
                return;
            };
            putting.completer.put(&*self.memory, cookie, outcome);
        }
        self.show_later();
    }

    fn done(self: Arc<Self>, cookies: &[u64]) {
        {
            let completer = &mut self.putting.lock().completer;
            for cookie in cookies {
                completer.put(&*self.memory, *cookie, Outcome::Done);
            }
        }
        self.show_later();
    }
}
