//! A ring in use: `core/capture`'s state machine with its memory and its timer.
//!
//! The timer is armed only while a block holds packets that its program has not got, so that
//! a ring nobody fills costs nothing. A packet waits for the time that the program asked for
//! at most, counted from its coming.

use alloc::sync::{Arc, Weak};

use base::{Duration, Instant};
use capture::{Frame, Geometry, Now, Refusal, Ring, RingRequest, SlotGeometry, SlotRing, View};
use sched::timer::{self, Expire, Target, TimerId};
use sync::{Error, Result};

use super::drops::DropReason;
use super::listener::Listener;
use super::tap;
use mm::shared_pages::SharedPages;
use sockets::ring_memory::{self, CaptureMemory};
use vfs::socket::PacketStatistics;

/// How long a packet at least waits for others that share its block.
const LATE_BLOCK_WAITS: Duration = Duration::from_millis(1);

/// A ring, its memory and its timer.
pub(super) struct MappedRing {
    ring: Kind,
    pages: Arc<SharedPages>,
    alarm: Arc<Alarm>,
    armed: Option<TimerId>,
}

enum Kind {
    /// Version 3.
    Blocks(Ring),
    /// Version 2.
    Slots(SlotRing),
}

/// Which ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Layout {
    /// Packets share blocks (TPACKET_V3).
    Blocks,
    /// Each has a slot, and is told of at once (TPACKET_V2).
    Slots,
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

fn refused(refusal: Refusal) -> Error {
    match refusal {
        Refusal::TooLarge { .. } => Error::OutOfMemory,
        _ => Error::Invalid,
    }
}

impl MappedRing {
    /// A ring for `listener` as a program asks for it.
    ///
    /// Errors: `Invalid` for one that cannot be, `OutOfMemory` for one that is too large.
    pub(super) fn new(
        request: &RingRequest,
        layout: Layout,
        view: View,
        listener: Weak<Listener>,
    ) -> Result<Self> {
        let left = ring_memory::bytes_left();
        let (ring, bytes) = match layout {
            Layout::Blocks => {
                let geometry = Geometry::check(request, view, left).map_err(refused)?;
                let ring = Ring::new(geometry, tap::now());
                (Kind::Blocks(ring), geometry.bytes())
            }
            Layout::Slots => {
                let geometry = SlotGeometry::check(request, view, left).map_err(refused)?;
                (Kind::Slots(SlotRing::new(geometry)), geometry.bytes())
            }
        };
        Ok(Self {
            ring,
            pages: ring_memory::allocate(bytes)?,
            alarm: Arc::new(Alarm(listener)),
            armed: None,
        })
    }

    /// Stores a packet; whether there is something to read.
    pub(super) fn put(
        &mut self,
        frame: &Frame<'_>,
        keep: usize,
        now: Now,
    ) -> core::result::Result<bool, DropReason> {
        let pages = &mut CaptureMemory(&self.pages);
        let (deadline, is_ready) = match &mut self.ring {
            Kind::Slots(ring) => {
                ring.receive(pages, frame, keep, now.wall)?;
                return Ok(true);
            }
            Kind::Blocks(ring) => {
                let captured = ring.receive(pages, frame, keep, now)?;
                if self.armed.is_some() {
                    return Ok(captured.is_block_ready);
                }
                (ring.deadline(), captured.is_block_ready)
            }
        };
        self.arm(deadline, now.clock);
        Ok(is_ready)
    }

    /// The timer fired; whether a block is ready.
    pub(super) fn expire(&mut self) -> bool {
        self.armed = None;
        let Kind::Blocks(ring) = &mut self.ring else {
            return false;
        };
        let now = tap::now();
        let is_ready = ring.expire(&mut CaptureMemory(&self.pages), now);
        if ring.is_waiting() {
            let deadline = ring.deadline();
            self.arm(deadline, now.clock);
        }
        is_ready
    }

    fn arm(&mut self, deadline: Instant, now: Instant) {
        // An empty block may have waited for longer than its time.
        let deadline = deadline.max(now + LATE_BLOCK_WAITS);
        let target = Target::Call(self.alarm.clone());
        self.armed = Some(timer::add(deadline, target));
    }

    pub(super) fn is_readable(&self) -> bool {
        match &self.ring {
            Kind::Blocks(ring) => ring.is_readable(&CaptureMemory(&self.pages)),
            Kind::Slots(ring) => ring.is_readable(&CaptureMemory(&self.pages)),
        }
    }

    /// What happened since the last call.
    pub(super) fn take_statistics(&mut self) -> PacketStatistics {
        let (counted, has_freezes) = match &mut self.ring {
            Kind::Blocks(ring) => (ring.take_statistics(), true),
            Kind::Slots(ring) => (ring.take_statistics(), false),
        };
        PacketStatistics {
            packets: counted.packets,
            drops: counted.drops,
            freezes: has_freezes.then_some(counted.freezes),
        }
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
