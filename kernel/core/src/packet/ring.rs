//! A ring in use: `core/capture`'s state machine with its memory and its timer.
//!
//! The timer is armed only while a block holds packets that its program has not got, so that
//! a ring nobody fills costs nothing. A packet waits for the time that the program asked for
//! at most, counted from its coming.

use alloc::sync::{Arc, Weak};

use base::{Duration, Instant};
use capture::{Frame, Geometry, Now, Ring, RingRequest, Statistics, View};

use super::drops::DropReason;
use super::listener::Listener;
use super::memory::{self, SharedPages};
use super::tap;
use crate::error::{Error, Result};
use crate::sched::timer::{self, Expire, Target, TimerId};

/// How long a packet at least waits for others that share its block.
const LATE_BLOCK_WAITS: Duration = Duration::from_millis(1);

/// A ring, its memory and its timer.
pub(super) struct MappedRing {
    ring: Ring,
    pages: Arc<SharedPages>,
    alarm: Arc<Alarm>,
    armed: Option<TimerId>,
}

/// Looks after a listener's ring; does not keep it alive.
struct Alarm(Weak<Listener>);

impl Expire for Alarm {
    fn expire(self: Arc<Self>, _now: Instant) {
        if let Some(listener) = self.0.upgrade() {
            listener.expire();
        }
    }
}

impl MappedRing {
    /// A ring for `listener` as a program asks for it.
    ///
    /// Errors: `Invalid` for one that cannot be, `OutOfMemory` for one that is too large.
    pub(super) fn new(request: &RingRequest, view: View, listener: Weak<Listener>) -> Result<Self> {
        let geometry = Geometry::check(request, view, memory::bytes_left());
        let geometry = geometry.map_err(|refusal| match refusal {
            capture::Refusal::TooLarge { .. } => Error::OutOfMemory,
            _ => Error::Invalid,
        })?;
        Ok(Self {
            ring: Ring::new(geometry, tap::now()),
            pages: Arc::new(SharedPages::new(geometry.bytes())?),
            alarm: Arc::new(Alarm(listener)),
            armed: None,
        })
    }

    /// Stores a packet; whether a block is ready.
    pub(super) fn put(
        &mut self,
        frame: &Frame<'_>,
        keep: usize,
        now: Now,
    ) -> core::result::Result<bool, DropReason> {
        let captured = self.ring.receive(&mut &*self.pages, frame, keep, now)?;
        if self.armed.is_none() {
            self.arm(now.clock);
        }
        Ok(captured.is_block_ready)
    }

    /// The timer fired; whether a block is ready.
    pub(super) fn expire(&mut self) -> bool {
        self.armed = None;
        let now = tap::now();
        let is_ready = self.ring.expire(&mut &*self.pages, now);
        if self.ring.is_waiting() {
            self.arm(now.clock);
        }
        is_ready
    }

    fn arm(&mut self, now: Instant) {
        // An empty block may have waited for longer than its time.
        let deadline = self.ring.deadline().max(now + LATE_BLOCK_WAITS);
        let target = Target::Call(self.alarm.clone());
        self.armed = Some(timer::add(deadline, target));
    }

    pub(super) fn is_readable(&self) -> bool {
        self.ring.is_readable(&&*self.pages)
    }

    pub(super) fn take_statistics(&mut self) -> Statistics {
        self.ring.take_statistics()
    }

    /// Its memory, to be mapped.
    pub(super) fn pages(&self) -> &Arc<SharedPages> {
        &self.pages
    }

    /// Whether a program has it mapped.
    pub(super) fn is_mapped(&self) -> bool {
        Arc::strong_count(&self.pages) > 1
    }
}

impl Drop for MappedRing {
    fn drop(&mut self) {
        if let Some(armed) = self.armed {
            timer::cancel(armed);
        }
    }
}
