//! Waiting for spin locks, and counting it.
//!
//! Locks are counted by what they protect, a class being all whose value has one type. Only who has to wait counts; to
//! take a free lock costs nothing for it. The counters are shared by all CPUs, which is cheap beside the wait.

use core::cell::Cell;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use base::{CpuId, Duration};
use spinlock::{Machine, Nap, Native, RawLock, RawShared, Slots, Waiter};

use super::Once;
use crate::cpu::{self, Own, own};

/// Classes that are told apart; all further ones are one.
const CLASSES_MAX: usize = 128;

/// Turns before a CPU queues where the host may stop one: 10 ms of them, more than any waits whom others let through.
const PATIENCE_TURNS: u32 = 1 << 20;
/// 0 where the host runs all CPUs at all times. The host treats all locks alike.
static TURNS_BEFORE_QUEUE: AtomicU32 = AtomicU32::new(PATIENCE_TURNS);

/// How a CPU naps, once all can, if the host may stop one.
static NAP: Once<fn(Duration)> = Once::new();

/// Each CPU's own: it waits for one lock at a time.
static WAITERS: Own<Waiter<Native>> = own!(Waiter<Native>, Waiter::new());
/// Locks are counted by what they protect, not one by one: most are short-lived.
static CLASSES: [Class; CLASSES_MAX] = [const { Class::new() }; CLASSES_MAX];
/// Those for which no class was left.
static OTHERS: Class = Class::new();

/// A class of locks, and how often they were waited for.
struct Class {
    name: Once<&'static str>,
    waits: AtomicU64,
    turns: AtomicU64,
    naps: AtomicU64,
}

/// How often locks of a class were held by another CPU when somebody wanted them.
#[derive(Clone, Copy, Debug)]
pub struct Contention {
    /// The type of what they protect. It may come more than once.
    pub class: &'static str,
    /// Acquisitions that had to wait.
    pub waits: u64,
    /// Turns of the loops in which they waited; a nap counts as those that fit into it.
    pub turns: u64,
    /// Naps between their looks at the lock.
    pub naps: u64,
}

impl Class {
    const fn new() -> Self {
        Self {
            name: Once::new(),
            waits: AtomicU64::new(0),
            turns: AtomicU64::new(0),
            naps: AtomicU64::new(0),
        }
    }

    fn shown(&self, class: &'static str) -> Contention {
        Contention {
            class,
            waits: self.waits.load(Relaxed),
            turns: self.turns.load(Relaxed),
            naps: self.naps.load(Relaxed),
        }
    }
}

/// The classes of which a lock was ever waited for.
pub fn contention() -> impl Iterator<Item = Contention> {
    let known = CLASSES.iter();
    let known = known.filter_map(|class| Some(class.shown(class.name.get()?)));
    let others = OTHERS.shown("(others)");
    known.chain((others.waits > 0).then_some(others))
}

/// Has waiters queue at once if CPUs are never stopped; once at boot.
pub(crate) fn init() {
    if arch::cpuid::are_cpus_dedicated() {
        TURNS_BEFORE_QUEUE.store(0, Relaxed);
    }
}

/// Lets waits be naps after a while, on all CPUs; once all have been started.
pub(crate) fn nap_in_waits(nap: fn(Duration)) {
    if !arch::cpuid::are_cpus_dedicated() {
        NAP.call_once(|| nap);
    }
}

/// Before `cpu` is started.
pub(crate) fn add_cpu(cpu: CpuId) {
    WAITERS.prepare(cpu);
}

/// Waits for a lock of the class; returns with it.
#[cold]
#[inline(never)]
pub(super) fn wait(lock: &RawLock<Native>, name: &'static str) {
    let cpu = ThisCpu::default();
    count(&cpu, lock.wait(&cpu), name);
}

/// Waits until nobody writes; returns as one who reads.
#[cold]
#[inline(never)]
pub(super) fn wait_to_read<S: Slots<Native>>(lock: &RawShared<Native, S>, name: &'static str) {
    let cpu = ThisCpu::default();
    count(&cpu, lock.wait_to_read(&cpu), name);
}

/// Returns as the one who writes.
pub(super) fn write<S: Slots<Native>>(lock: &RawShared<Native, S>, name: &'static str) {
    let cpu = ThisCpu::default();
    let turns = lock.write(&cpu);
    if turns > 0 {
        count(&cpu, turns, name);
    }
}

#[cold]
fn count(cpu: &ThisCpu, turns: u32, name: &'static str) {
    let class = class_of(name);
    class.waits.fetch_add(1, Relaxed);
    class.turns.fetch_add(u64::from(turns), Relaxed);
    class.naps.fetch_add(u64::from(cpu.0.get()), Relaxed);
}

/// The class's slot is one of those behind where its name's address leads.
fn class_of(name: &'static str) -> &'static Class {
    let start = name.as_ptr().addr() >> 4;
    let mut slots = (0..CLASSES_MAX).map(|step| &CLASSES[(start + step) % CLASSES_MAX]);
    let is_own = |class: &&Class| core::ptr::eq(*class.name.call_once(|| name), name);
    slots.find(is_own).unwrap_or(&OTHERS)
}

/// This CPU, and how often it has napped in one wait.
#[derive(Default)]
struct ThisCpu(Cell<u32>);

impl Machine<Native> for ThisCpu {
    // A short section is over long before.
    const TURNS_UNTIL_RESERVED: u32 = 200;

    fn turns_before_queue(&self) -> u32 {
        TURNS_BEFORE_QUEUE.load(Relaxed)
    }

    fn me(&self) -> CpuId {
        cpu::id()
    }

    fn waiter(&self, cpu: CpuId) -> &Waiter<Native> {
        WAITERS.of(cpu)
    }

    fn pause(&self, turns: u32) -> u32 {
        match Nap::after(turns).zip(NAP.get()) {
            Some((nap, take)) => {
                take(nap.span);
                self.0.set(self.0.get().saturating_add(1));
                cpu::serve();
                nap.turns
            }
            None => {
                cpu::relax();
                1
            }
        }
    }
}
