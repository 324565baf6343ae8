//! A thread that looks after a ring while its program is elsewhere; as `keeper` does after frames.
//!
//! Requests go on in whoever enters the ring. A program that has requests under way and does not enter, because it
//! computes, waits for something else, or looks at its completions only, has this thread: it sleeps while somebody
//! waits in the ring or nothing is under way, and else looks every few milliseconds whether somebody was there. A program that
//! has the ring tell an eventfd waits for that, so its thread waits in the ring all the time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::time::Duration;

use super::entering::{OwnRing, Patience};
use crate::keeper;

/// How long requests may lie.
const PERIOD: Duration = Duration::from_millis(16);

/// See the module.
#[derive(Default)]
pub struct Keeper {
    is_started: AtomicBool,
    /// It sleeps until it is woken.
    is_resting: Mutex<bool>,
    rung: Condvar,
    /// Somebody waits for the ring elsewhere.
    pub is_prompt: AtomicBool,
}

impl Keeper {
    /// Somebody was in the ring, and leaves.
    pub fn note_left(&self, ring: &Arc<OwnRing>) {
        if !self.is_started.load(Ordering::Acquire) {
            self.start(ring);
        }
        let rests = self.is_resting.try_lock().is_ok_and(|rests| *rests);
        if rests {
            self.wake();
        }
    }

    #[cold]
    fn start(&self, ring: &Arc<OwnRing>) {
        if !self.is_started.swap(true, Ordering::AcqRel) {
            let ring = Arc::downgrade(ring);
            keeper::spawn("sietch-ring", move || keep(&ring));
        }
    }

    /// Its rest is over.
    pub fn wake(&self) {
        let mut is_resting = self
            .is_resting
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *is_resting = false;
        self.rung.notify_all();
    }

    fn rest(&self) {
        let mut is_resting = self
            .is_resting
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *is_resting = true;
        while *is_resting {
            let rested = self.rung.wait(is_resting);
            is_resting = rested.unwrap_or_else(PoisonError::into_inner);
        }
    }
}

fn keep(ring: &Weak<OwnRing>) {
    let mut visits = 0;
    while let Some(ring) = ring
        .upgrade()
        .filter(|ring| !ring.is_over.load(Ordering::Acquire))
    {
        if ring.keeper.is_prompt.load(Ordering::Acquire) {
            let look = ring.look();
            let for_ever = Patience {
                least: 0,
                until: None,
                mask: std::ptr::null(),
            };
            if ring.sleep(&look, &for_ever).is_err() {
                std::thread::sleep(PERIOD);
            }
            continue;
        }
        let now = ring.visits.load(Ordering::Acquire);
        if now == visits {
            let is_waited_for = ring.waiters.load(Ordering::Acquire) != 0;
            let is_busy = !is_waited_for && {
                ring.look();
                ring.lock().ring.is_busy()
            };
            if !is_busy {
                ring.keeper.rest();
                continue;
            }
        }
        visits = now;
        std::thread::sleep(PERIOD);
    }
}
