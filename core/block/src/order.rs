//! What survives a loss of power, as types.
//!
//! # Problem
//! "The write is complete" and "the write survives" are different facts, and whoever mixes them up
//! hears of it only when the power fails. A flag on a request can be forgotten in silence. Worse, a
//! flush that fails may have dropped what it was to bring out: the *next* flush then succeeds, and says
//! nothing about it.
//!
//! # Idea
//! Completed writes of a disk are counted. A [`Written`] knows its number; a flush takes note of the
//! count when it is *sent*, so a [`Flushed`] knows which numbers it covers. A flush that fails condemns all
//! numbers up to the count of then: no later flush covers them. A write that consists of several commands may
//! have been half done when a flush failed, so it remembers how many had failed when it began. What must survive asks for
//! [`Durable`], and there is no other way to one.
//!
//! ```
//! use block::order::{Durable, Order};
//! let order = Order::new();
//! let written = order.completed();
//! let flush = order.flush_begins();
//! let late = order.completed();
//! let flushed = order.flush_succeeded(flush);
//! let durable: Durable = written.settle(&flushed).unwrap();
//! assert!(late.settle(&flushed).is_err(), "it was complete only after the flush was sent");
//! # let _ = durable;
//! ```
//! A write that nobody asks about is refused by the compiler's lint, and it cannot be taken for more:
//! ```compile_fail,E0308
//! # let order = block::order::Order::new();
//! fn commit(_: block::Durable) {}
//! commit(order.completed());
//! ```
//! ```compile_fail,E0423
//! let forged = block::Durable(());
//! ```

use core::sync::atomic::{AtomicU64, Ordering::AcqRel, Ordering::Acquire};

/// The completed writes of one disk, over all its queues.
#[derive(Debug, Default)]
pub struct Order {
    completed: AtomicU64,
    /// Writes up to this one were complete when a flush failed.
    condemned: AtomicU64,
    /// Flushes that have failed.
    failures: AtomicU64,
}

/// A write that is complete, and that a loss of power may undo.
#[derive(PartialEq, Eq, Debug)]
#[must_use = "a loss of power undoes it until a flush has covered it"]
pub struct Written {
    number: u64,
}

/// A write under way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Writing {
    failures: u64,
}

/// A flush under way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Flushing {
    up_to: u64,
}

/// A flush that has succeeded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Flushed {
    after: u64,
    up_to: u64,
}

/// Something that a loss of power does not undo.
#[derive(PartialEq, Eq, Debug)]
pub struct Durable(());

impl Order {
    /// Of a disk that nobody wrote to yet.
    pub const fn new() -> Self {
        Self {
            completed: AtomicU64::new(0),
            condemned: AtomicU64::new(0),
            failures: AtomicU64::new(0),
        }
    }

    /// Before the first command of a write is sent.
    pub fn write_begins(&self) -> Writing {
        Writing {
            failures: self.failures.load(Acquire),
        }
    }

    /// The device has completed the last command of a write. If a flush has failed since the first was sent, that one
    /// may have dropped a part of it, and none that comes covers it.
    pub fn write_completed(&self, write: Writing) -> Written {
        match self.failures.load(Acquire) == write.failures {
            true => self.completed(),
            false => Written { number: 0 },
        }
    }

    /// The device has completed a write.
    pub fn completed(&self) -> Written {
        Written {
            number: self.completed.fetch_add(1, AcqRel) + 1,
        }
    }

    /// The device has completed a write that was forced.
    pub(crate) fn forced(&self) -> Durable {
        Durable(())
    }

    /// Before a flush is sent.
    pub fn flush_begins(&self) -> Flushing {
        Flushing {
            up_to: self.completed.load(Acquire),
        }
    }

    /// The device has completed it.
    pub fn flush_succeeded(&self, flush: Flushing) -> Flushed {
        Flushed {
            after: self.condemned.load(Acquire),
            up_to: match planted::is("a flush covers what was written after it was sent") {
                true => self.completed.load(Acquire),
                false => flush.up_to,
            },
        }
    }

    /// It failed: what was complete by now may be gone, and nothing will say so again.
    pub fn flush_failed(&self) {
        if planted::is("a flush that failed condemns nothing") {
            return;
        }
        self.failures.fetch_add(1, AcqRel);
        self.condemned
            .fetch_max(self.completed.load(Acquire), AcqRel);
    }
}

impl Flushed {
    /// Whether what was written survives.
    pub fn covers(&self, written: &Written) -> bool {
        self.after < written.number && written.number <= self.up_to
    }
}

impl Written {
    /// The proof that it survives, if `flushed` covers it.
    pub fn settle(self, flushed: &Flushed) -> Result<Durable, Self> {
        match flushed.covers(&self) {
            true => Ok(Durable(())),
            false => Err(self),
        }
    }

    /// Nobody relies on it: as write(2) without a later fsync(2).
    pub fn leave_volatile(self) {}
}
