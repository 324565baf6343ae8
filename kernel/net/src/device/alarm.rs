//! When a shard runs though nobody polls it, and what one CPU does for the shards of others.
//!
//! A program's call may enter the shard of another CPU, or one that has no CPU, and leave frames
//! there that the card has not been told of, or a deadline. The frames are announced when the
//! program's own CPU comes to a rest, as those of its own shard are, so that a batch of answers
//! costs one notification wherever the connections are. For the deadline each shard has one
//! alarm, on the CPU that set it first: it does what is due from there, and the shard's
//! own CPU takes the alarm over when it polls.
//!
//! Lock order: a shard, whose alarm is part of it, then a CPU's timers.

use alloc::sync::{Arc, Weak};
use core::sync::atomic::Ordering;

use base::{CpuId, Instant, SharedCpuSet};
use mach::cpu::PerCpu;
use sched::timer::{self, Expire, Target, TimerId};
use sched::{Softirq, sample};

use super::{poll, ring, runners};
use crate::stack::NetStack;
use crate::stack::env::{Attachment, Link};

/// Rings of others' shards in which this CPU left frames, by the number of the CPU that has the
/// ring. It is the CPU's: only the card's rings, of which there is one set, are announced so.
static UNANNOUNCED: PerCpu<SharedCpuSet> = PerCpu::new(SharedCpuSet::default);

/// The one timer of a shard: its stack's next deadline, or the fallback.
pub(crate) struct Alarm {
    /// When it goes off or did, [`Instant::NEVER`] at first.
    due: Instant,
    timer: Option<TimerId>,
}

impl Alarm {
    pub(crate) const fn new() -> Self {
        Self {
            due: Instant::NEVER,
            timer: None,
        }
    }

    /// Whether it will go off, and no later than at `deadline`.
    #[inline]
    fn serves(&self, deadline: Instant, now: Instant) -> bool {
        self.due <= deadline && self.due > now
    }

    #[cold]
    fn set(&mut self, target: Target, deadline: Instant, now: Instant) {
        self.cancel(now);
        self.due = deadline;
        self.timer = Some(timer::add(deadline, target));
    }

    /// One that is due goes off by itself; to cancel it is to wait for the CPU that has it.
    fn cancel(&mut self, now: Instant) {
        if self.due > now
            && let Some(old) = self.timer.take()
        {
            timer::cancel(old);
        }
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        self.cancel(mach::time::now());
    }
}

/// This CPU left frames in a shard. A card that one shard has for itself has no ring to tell.
#[inline]
pub(crate) fn note(link: &Link) {
    if matches!(link.attachment, Attachment::Ring(_)) && !is_own(link) {
        let ring = CpuId(u32::from(link.number));
        UNANNOUNCED.get().insert(ring, Ordering::Relaxed);
    }
}

/// Whether this CPU polls a shard.
#[inline]
pub(crate) fn is_own(link: &Link) -> bool {
    link.is_polled && runners::is_own(link.number)
}

/// Has the card told of the frames that this CPU left in others' shards.
pub(crate) fn announce() {
    if UNANNOUNCED.get().is_empty(Ordering::Relaxed) {
        return;
    }
    let rings = UNANNOUNCED.get().take(Ordering::Relaxed);
    rings.iter().for_each(|cpu| ring::announce(cpu.0 as u16));
}

/// Sees to it that a shard's stack runs at `deadline` at the latest. It is `now`, by the clock
/// of whoever was in the shard last: an alarm that went off since was seen going off.
#[inline]
pub(crate) fn arm(link: &mut Link, deadline: Instant) {
    if !is_served(link, deadline) {
        set(link, deadline, link.now);
    }
}

/// The same for a `deadline` that is nobody's: it is moved to an earlier moment at which this CPU has an alarm, if there
/// is one.
#[inline]
pub(crate) fn arm_fallback(link: &mut Link, deadline: Instant) {
    if !is_served(link, deadline) {
        set(link, sample::coalesced(deadline, link.now), link.now);
    }
}

/// Whether nothing need be done for that.
#[inline]
pub(crate) fn is_served(link: &Link, deadline: Instant) -> bool {
    deadline == Instant::NEVER || link.alarm.serves(deadline, link.now)
}

/// Another CPU runs the shard from now on, and arms its alarm when it polls.
pub(super) fn forget(link: &mut Link) {
    link.alarm.cancel(link.now);
    link.alarm.due = Instant::NEVER;
}

#[cold]
fn set(link: &mut Link, deadline: Instant, now: Instant) {
    let target = match is_own(link) {
        true => Target::Raise(Softirq::Net),
        false => Target::Call(Arc::new(Run {
            stack: link.stack.clone(),
            shard: link.number,
        })),
    };
    link.alarm.set(target, deadline, now);
}

/// A deadline in a shard that this CPU does not poll.
struct Run {
    stack: Weak<NetStack>,
    shard: u16,
}

impl Expire for Run {
    fn expire(self: Arc<Self>, _now: Instant) {
        let Some(of) = self.stack.upgrade() else {
            return;
        };
        let is_polled = of.with_shard(self.shard, |stack, link| {
            let deadline = poll::run_due(&of, stack, link);
            arm(link, deadline);
            link.is_polled
        });
        of.follow_addresses();
        if is_polled == Some(true) {
            ring::announce(self.shard);
        }
    }
}
