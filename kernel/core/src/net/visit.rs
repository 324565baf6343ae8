//! What one CPU does for the shards of others.
//!
//! A program's call may enter the shard of another CPU and leave frames there that the
//! card has not been told of, or a deadline. The frames are announced when the program's
//! own CPU comes to a rest, as those of its own shard are, so that a batch of answers costs
//! one notification wherever the connections are. For the deadline each shard has one
//! alarm, on the CPU that set it first: it does what is due from there, and the shard's
//! own CPU takes the alarm over when it polls.
//!
//! Lock order: a shard, then an alarm, then a CPU's timers.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use base::Instant;
use inet::Env;
use mach::cpu::{MAX_CPUS, PerCpu};
use mach::sync::Spin;

use super::shard::{self, with_shard};
use super::{poll, ring};
use crate::sched::Softirq;
use crate::sched::timer::{self, Expire, Target, TimerId};

/// The one timer of each shard: the stack's next deadline or the fallback.
static ALARMS: [Alarm; MAX_CPUS] = [const { Alarm::new() }; MAX_CPUS];
/// Shards of others in which this CPU left frames, a bit for each.
static VISITED: PerCpu<AtomicU32> = PerCpu::new(AtomicU32::default);
const _: () = assert!(MAX_CPUS <= 32, "a shard is a bit");

struct Alarm {
    /// When it goes off or did, [`Instant::NEVER`] at first; changed under `timer`'s lock only.
    due_ns: AtomicU64,
    timer: Spin<Option<TimerId>>,
}

impl Alarm {
    const fn new() -> Self {
        Self {
            due_ns: AtomicU64::new(Instant::NEVER.as_nanos()),
            timer: Spin::new(None),
        }
    }

    /// Whether it will go off, and no later than at `deadline`.
    #[inline]
    fn serves(&self, deadline: Instant, now: Instant) -> bool {
        let due = self.due();
        due <= deadline && due > now
    }

    #[inline]
    fn due(&self) -> Instant {
        Instant::from_nanos(self.due_ns.load(Ordering::Relaxed))
    }

    #[cold]
    fn set(&self, shard: u16, deadline: Instant, now: Instant) {
        let mut timer = self.timer.lock();
        if self.serves(deadline, now) {
            return;
        }
        // One that is due goes off by itself; to cancel it is to wait for the CPU that has it.
        if let Some(old) = timer.take_if(|_| self.due() > now) {
            timer::cancel(old);
        }
        self.due_ns.store(deadline.as_nanos(), Ordering::Relaxed);
        *timer = Some(timer::add(deadline, target_of(shard)));
    }
}

/// This CPU left frames in `shard`.
#[inline]
pub(super) fn note(shard: u16) {
    if shard != shard::own() {
        VISITED.get().fetch_or(1 << shard, Ordering::Relaxed);
    }
}

/// Has the card told of the frames that this CPU left in others' shards.
pub(super) fn announce() {
    if VISITED.get().load(Ordering::Relaxed) == 0 {
        return;
    }
    let visited = VISITED.get().swap(0, Ordering::Relaxed);
    let visited = (0..shard::count()).filter(|shard| visited >> shard & 1 != 0);
    visited.for_each(ring::announce);
}

/// Sees to it that a shard's stack runs at `deadline` at the latest. It is `now`, by the clock
/// of whoever was in the shard last: an alarm that went off since was seen going off.
#[inline]
pub(super) fn arm(shard: u16, deadline: Instant, now: Instant) {
    if !is_served(shard, deadline, now) {
        alarm_of(shard).set(shard, deadline, now);
    }
}

/// Whether nothing need be done for that.
#[inline]
pub(super) fn is_served(shard: u16, deadline: Instant, now: Instant) -> bool {
    deadline == Instant::NEVER || alarm_of(shard).serves(deadline, now)
}

#[inline]
fn alarm_of(shard: u16) -> &'static Alarm {
    &ALARMS[usize::from(shard) % MAX_CPUS]
}

fn target_of(shard: u16) -> Target {
    match shard == shard::own() {
        true => Target::Raise(Softirq::Net),
        false => Target::Call(Arc::new(Visit(shard))),
    }
}

/// A deadline in another CPU's shard.
struct Visit(u16);

impl Expire for Visit {
    fn expire(self: Arc<Self>, _now: Instant) {
        let due = with_shard(self.0, |stack, link| {
            (poll::run_due(stack, link), link.now())
        });
        ring::announce(self.0);
        if let Some((deadline, now)) = due {
            arm(self.0, deadline, now);
        }
    }
}
