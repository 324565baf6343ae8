//! Deadlines of one CPU: who is woken or called, and when.
//!
//! Timers are exact to the clock of the machine. They are sorted for each CPU (`waitq`); the
//! hardware is armed for the earliest. Blocking with a timeout needs no entry here when
//! the thread waits in place (`idle`), which is the common case of a server.
//!
//! Lock order: a CPU's timers are innermost; targets are called without the lock.

use alloc::sync::Arc;

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

/// Each CPU's own, locked because others cancel.
static TIMERS: [Spin<Deadlines<Target>>; MAX_CPUS] =
    [const { Spin::new(Deadlines::new()) }; MAX_CPUS];

fn timers(cpu: CpuId) -> &'static Spin<Deadlines<Target>> {
    // tidy: the machine has no CPU with a higher number.
    &TIMERS[cpu.index()]
}

/// Arranges for `target` at `deadline`, on this CPU.
pub fn add(deadline: Instant, target: Target) -> TimerId {
    let cpu = mach::cpu::id();
    let id = timers(cpu).lock().add(deadline, target);
    mach::time::set_deadline(deadline);
    TimerId { cpu, id }
}

/// Forgets a timer; false if it has fired already.
pub fn cancel(timer: TimerId) -> bool {
    let cancelled = timers(timer.cpu).lock().cancel(timer.id);
    cancelled.is_some()
}

/// When the first one is due.
pub(crate) fn first_deadline(cpu: CpuId) -> Instant {
    timers(cpu).lock().first()
}

/// Takes out one that is due at `now`.
pub(crate) fn pop_expired(cpu: CpuId, now: Instant) -> Option<Target> {
    timers(cpu).lock().pop_due(now)
}
