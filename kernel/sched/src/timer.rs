//! Deadlines of one CPU: who is woken or called, and when.
//!
//! Timers are exact to the clock of the machine. They are sorted for each CPU (`waitq`); the
//! hardware is armed for the earliest. Blocking with a timeout needs no entry here when
//! the thread waits in place (`idle`), which is the common case of a server.
//!
//! Lock order: a CPU's timers are innermost; targets are called without the lock.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering};

use base::{CpuId, Instant};
use mach::cpu::MAX_CPUS;
use mach::sync::Spin;
use waitq::{DeadlineId, Deadlines};

use crate::{Entity, Softirq};

/// Something that wants to be called at a deadline.
pub trait Expire: Send + Sync {
    /// The deadline passed. Must not block.
    fn expire(self: Arc<Self>, now: Instant);
}

/// What happens at a deadline.
#[derive(Clone)]
pub enum Target {
    /// The thread is woken.
    Wake(Arc<Entity>),
    /// The object is called.
    Call(Arc<dyn Expire>),
    /// A source of deferred work runs.
    Raise(Softirq),
}

/// Names a timer until it fires or is cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimerId {
    cpu: CpuId,
    id: DeadlineId,
}

/// The timers of one CPU.
struct Timers {
    pending: Spin<Deadlines<Target>>,
    /// When the first one is due, in nanoseconds: asked at each switch, without the lock.
    first_ns: AtomicU64,
}

/// Each CPU's own, locked because others cancel.
static TIMERS: [Timers; MAX_CPUS] = [const {
    Timers {
        pending: Spin::new(Deadlines::new()),
        first_ns: AtomicU64::new(Instant::NEVER.as_nanos()),
    }
}; MAX_CPUS];

impl Timers {
    fn of(cpu: CpuId) -> &'static Self {
        // tidy: the machine has no CPU with a higher number.
        &TIMERS[cpu.index()]
    }

    fn change<R>(&self, act: impl FnOnce(&mut Deadlines<Target>) -> R) -> R {
        let mut pending = self.pending.lock();
        let done = act(&mut pending);
        let first_ns = pending.first().as_nanos();
        self.first_ns.store(first_ns, Ordering::Relaxed);
        done
    }
}

/// Arranges for `target` at `deadline`, on this CPU.
pub fn add(deadline: Instant, target: Target) -> TimerId {
    let cpu = mach::cpu::id();
    let id = Timers::of(cpu).change(|pending| pending.add(deadline, target));
    mach::time::set_deadline(deadline);
    TimerId { cpu, id }
}

/// Forgets a timer; false if it has fired already.
pub fn cancel(timer: TimerId) -> bool {
    let cancelled = Timers::of(timer.cpu).change(|pending| pending.cancel(timer.id));
    cancelled.is_some()
}

/// When the first one is due.
#[inline]
pub(crate) fn first_deadline(cpu: CpuId) -> Instant {
    Instant::from_nanos(Timers::of(cpu).first_ns.load(Ordering::Relaxed))
}

/// Takes out one that is due at `now`.
pub(crate) fn pop_expired(cpu: CpuId, now: Instant) -> Option<Target> {
    Timers::of(cpu).change(|pending| pending.pop_due(now))
}
