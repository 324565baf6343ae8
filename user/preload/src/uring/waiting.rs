//! Waiting for completions; as an epoll set's waiter does (`sets`).

use std::ffi::c_int;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use base::Instant;
use posix::{Errno, Result};

use super::entering::{Inside, OwnRing, Patience};
use crate::ears::Known;
use crate::patience::{self, poll_files, readable};
use crate::state::{self, Held};

/// Without a host to wait at we look again after that time.
const SOON_NANOS: u64 = 10_000_000;

/// What a look has found.
pub struct Look {
    /// Completions in the ring.
    pub ready: u32,
    pub has_overflow: bool,
    /// Completions so far.
    posted: u32,
    /// When the next timeout ends.
    deadline: Option<Instant>,
    /// [`OwnRing::changes`] before it.
    changes: usize,
}

impl OwnRing {
    /// Looks after frames, and does what can be done.
    pub fn look(&self) -> Look {
        let changes = self.changes.load(Ordering::Acquire);
        for place in patience::places(self.set.places() | 1) {
            if let Ok(mut held) = Held::at(place) {
                let now = held.now();
                held.host().turn(now);
            }
        }
        let mut inside = self.lock();
        self.note_ready(&mut inside);
        self.work(&mut inside);
        let ready = inside.ring.ready();
        let look = Look {
            ready,
            has_overflow: inside.ring.has_overflow(),
            posted: inside.ring.posted(),
            deadline: inside.ring.next_deadline(),
            changes,
        };
        drop(inside);
        Inside::flush(&self.set);
        look
    }

    /// Requests that wait for sockets to which something has happened go on.
    fn note_ready(&self, inside: &mut Inside) {
        let mut numbers = [0; 64];
        loop {
            let mut count = 0;
            self.set.collect(numbers.len(), |event| {
                if let Some(place) = numbers.get_mut(count) {
                    *place = event.data as c_int;
                    count += 1;
                }
            });
            for number in numbers.iter().take(count) {
                inside.ring.note_ready(*number);
            }
            if count < numbers.len() {
                return;
            }
        }
    }

    /// Waits until so many completions are in the ring.
    ///
    /// Errors: `BUSY` if some find no room; `INTERRUPTED`, `TIME_IS_UP`.
    pub fn wait(self: &Arc<Self>, patience: &Patience) -> Result<()> {
        let mut interrupted_at = None;
        loop {
            let look = self.look();
            if look.ready >= patience.least {
                return Ok(());
            }
            if look.has_overflow {
                return Err(Errno::BUSY);
            }
            // The kernel interrupts a wait for what the thread has under way there, too.
            if interrupted_at.take() == Some(look.posted) {
                return Err(Errno::INTERRUPTED);
            }
            if patience.until.is_some_and(|until| until <= state::now()) {
                return Err(Errno::TIME_IS_UP);
            }
            if self.is_over.load(Ordering::Acquire) {
                return Err(Errno::BAD_NUMBER);
            }
            match self.sleep(&look, patience) {
                Err(Errno::INTERRUPTED) => interrupted_at = Some(look.posted),
                slept => slept?,
            }
        }
    }

    /// Until something has happened since a look.
    ///
    /// Errors: `INTERRUPTED`, `TOO_MANY`.
    pub fn sleep(self: &Arc<Self>, look: &Look, patience: &Patience) -> Result<()> {
        let until = patience.until.into_iter().chain(look.deadline).min();
        let number = self.wait_for.load(Ordering::Acquire);
        let mut files = [readable(number)];
        let Ok(held) = Held::wait() else {
            let soon = Some(SOON_NANOS);
            return poll_files(&mut files, soon, patience.mask).map(drop);
        };
        self.waiters.fetch_add(1, Ordering::AcqRel);
        let is_late = self.changes.load(Ordering::Acquire) != look.changes;
        let slept = match is_late || self.set.may_be_ready() {
            true => {
                drop(held);
                Ok(None)
            }
            false => {
                let others = self.set.places() & !1;
                let is_over = |_: &mut Held| self.set.may_be_ready();
                let known = Known::of(number, self, true);
                let waited_for = (&mut files[..], Some(&known));
                patience::wait_at(held, others, is_over, waited_for, until, patience.mask)
            }
        };
        self.waiters.fetch_sub(1, Ordering::AcqRel);
        slept.map(drop)
    }
}
