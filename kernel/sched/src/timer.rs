//! Deadlines of one CPU: who is woken or called, and when.
//!
//! Timers are exact to the clock of the machine. They are sorted in a tree per CPU; the
//! hardware is armed for the earliest. Blocking with a timeout needs no entry here when
//! the thread waits in place (`idle`), which is the common case of a server.
//!
//! Lock order: a CPU's timers are innermost; targets are called without the lock.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use core::cell::Cell;

use base::{CpuId, Duration, Instant};
use mach::cpu::{MAX_CPUS, PerCpu};
use mach::sync::Spin;

use crate::softirq::{Softirq, Work, raise, register_softirq};
use crate::{Entity, Flags, current, placement, runnable, sample, wake};

/// How long a thread runs while others wait.
pub const SLICE: Duration = Duration::from_millis(4);
/// Targets called before the CPU looks at other work.
const BATCH_TIMERS_MAX: usize = 64;

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
    key: (Instant, u64),
}

struct Timers {
    pending: BTreeMap<(Instant, u64), Target>,
    serial: u64,
}

static TIMERS: [Spin<Timers>; MAX_CPUS] = [const {
    Spin::new(Timers {
        pending: BTreeMap::new(),
        serial: 0,
    })
}; MAX_CPUS];

/// When each CPU compares queues again. One that works is interrupted for samples at least.
static NEXT_BALANCE: PerCpu<Cell<Instant>> = PerCpu::new(|| Cell::new(Instant::START));

/// Connects the deadline interrupt; once at boot.
pub fn init() {
    sample::init();
    crate::halt_poll::init();
    register_softirq(
        Softirq::Timer,
        Work {
            run: run_expired,
            poll: || false,
            prepare_idle: || true,
        },
    );
    mach::time::on_deadline(|| raise(Softirq::Timer));
}

/// Arranges for `target` at `deadline`, on this CPU.
pub fn add(deadline: Instant, target: Target) -> TimerId {
    let cpu = mach::cpu::id();
    let mut timers = TIMERS[cpu.index()].lock();
    timers.serial += 1;
    let key = (deadline, timers.serial);
    timers.pending.insert(key, target);
    mach::time::set_deadline(deadline);
    TimerId { cpu, key }
}

/// Forgets a timer; false if it has fired already.
pub fn cancel(timer: TimerId) -> bool {
    TIMERS[timer.cpu.index()]
        .lock()
        .pending
        .remove(&timer.key)
        .is_some()
}

fn first_deadline(cpu: CpuId) -> Instant {
    let timers = TIMERS[cpu.index()].lock();
    timers
        .pending
        .first_key_value()
        .map_or(Instant::NEVER, |((deadline, _), _)| *deadline)
}

fn pop_expired(cpu: CpuId, now: Instant) -> Option<Target> {
    let mut timers = TIMERS[cpu.index()].lock();
    let entry = timers.pending.first_entry()?;
    (entry.key().0 <= now).then(|| entry.remove())
}

fn run_expired() {
    let cpu = mach::cpu::id();
    let now = mach::time::now();
    for _ in 0..BATCH_TIMERS_MAX {
        match pop_expired(cpu, now) {
            Some(Target::Wake(thread)) => wake(&thread),
            Some(Target::Call(object)) => object.expire(now),
            Some(Target::Raise(source)) => raise(source),
            None => break,
        }
    }
    if NEXT_BALANCE.get().get() <= now {
        NEXT_BALANCE.get().set(now + SLICE);
        placement::balance();
    }
    let me = current();
    if me.class.policy().is_realtime() {
        runnable::check_realtime_limit();
    }
    if placement::is_turn_over(&me, me.life.slice_used(now)) {
        me.set_flags(Flags::RESCHEDULE);
    }
    arm_slice();
}

/// Arms the hardware for a thread that works: the first timer, the next sample, and the end of
/// the slice where others wait. While a thread waits in place there is nothing to arm for: its
/// CPU does so before it halts ([`arm_for_idle`]), and the thread when it goes on.
pub(crate) fn arm_slice() {
    if current().works() {
        arm_to_work();
    }
}

/// The same for a thread that is about to work, be it after a wait in place.
///
/// One deadline, because each that is earlier than the armed one is an exit to a hypervisor.
pub(crate) fn arm_to_work() {
    let cpu = mach::cpu::id();
    let mut deadline = first_deadline(cpu).min(sample::next());
    if placement::has_ready(cpu) {
        deadline = deadline.min(mach::time::now() + SLICE);
    }
    mach::time::set_deadline(deadline);
}

/// Arms the hardware for a halt that ends at `deadline` at the latest.
pub(crate) fn arm_for_idle(deadline: Instant) {
    mach::time::set_deadline(first_deadline(mach::cpu::id()).min(deadline));
}
