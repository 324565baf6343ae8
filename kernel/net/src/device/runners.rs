//! Which CPU runs each shard of the card, with its ring; and that it changes with the load.
//!
//! # Idea
//! At the start CPU `n` runs shard `n`. [`link::elastic`] looks at the load every [`WINDOW`], gives
//! CPUs back that are not needed, and takes them in again. A shard moves whole, with its connections
//! and its ring: only who polls it changes, and whom its interrupt calls. The administrator may name
//! the CPUs among which shards move ([`bind`]).
//!
//! A card's only shard has no CPU of its own: whichever waits polls it, and CPU 0 is interrupted. It
//! has one from the moment that it is bound until it is no longer.
//!
//! # Invariants
//! - *Order*: a ring and a shard have locks, and frames on their way between them queues, so two CPUs
//!   that are both about to run a shard, while it moves, do it one after the other and reorder nothing.
//! - *Nothing is slept on*: the new CPU is told after [`CPUS`] names it, and looks at everything that
//!   the old one may have left: the ring, the inbox, deadlines, frames that the card was not told of.
//!   Who brings work later sees the new CPU: [`CPUS`] changes under the shard's lock, and who does
//!   not hold that (`inbox`) reads it under the lock of the queue that the new CPU empties next.
//! - *Idle costs nothing*: the window has a timer only while more CPUs than one are in use, or many
//!   frames come.
//!
//! The only shard has no ring and no queue, but one lock for all. Its card is asked, and told to interrupt
//! or not to, with that lock held by a CPU that runs the shard, and [`CPUS`] changes under it: whatever
//! the old CPU did, the new one comes after.
//!
//! Lock order: the decision, then a shard, a ring, a CPU's timers.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU16, Ordering};

use base::{CpuId, CpuSet, Duration, Instant, SharedCpuSet};
use link::elastic::{Elastic, WHOLE};
use mach::cpu::PerCpu;
use mach::sync::{Once, Spin};
use sched::sample::cpu_use;
use sched::timer::{self, Expire, Target};
use sched::{Softirq, raise, raise_on};

use super::alarm;
use crate::stack::{self, SHARDS_MAX};

/// Between two looks at the load.
const WINDOW: Duration = Duration::from_millis(100);

/// So many windows without a frame are not looked at any further, once one CPU has all.
const QUIET_WINDOWS: u32 = 10;

/// Leads the interrupt of a pair of queues to a CPU.
pub type LeadInterrupt = Box<dyn Fn(u16, CpuId) + Send + Sync>;

/// In [`CPUS`]: whichever CPU waits runs the shard.
const ANY: u16 = u16::MAX;

/// The CPU of each shard of the card, of which there is one in a machine.
static CPUS: [AtomicU16; SHARDS_MAX] = [const { AtomicU16::new(ANY) }; SHARDS_MAX];
/// The shards of each CPU, by the numbers of the CPUs that had them first: [`CPUS`] the other way.
static SHARDS: PerCpu<SharedCpuSet> = PerCpu::new(SharedCpuSet::default);
/// Whether a look is to come, at the machine's one card.
static IS_ON: AtomicBool = AtomicBool::new(false);
/// Of the same card.
static WATCH: Once<Spin<Watch>> = Once::new();

/// What the decision rests on, and what it knew at the last look.
struct Watch {
    elastic: Elastic,
    /// Those that the administrator named.
    named: CpuSet,
    lead_interrupt: LeadInterrupt,
    since: Option<Instant>,
    idle_ns: Vec<u64>,
    received: Vec<u64>,
    quiet_windows: u32,
}

/// Each of so many shards has the CPU of its number, but an only one any; once, when the card is
/// attached.
pub(super) fn init(shards: u16, lead_interrupt: LeadInterrupt) {
    if shards > 1 {
        (0..shards).for_each(|shard| point(shard, Some(CpuId(shard.into()))));
    }
    WATCH.call_once(|| {
        let watch = Watch {
            elastic: Elastic::new(shards),
            named: CpuSet::EMPTY,
            lead_interrupt,
            since: None,
            idle_ns: Vec::new(),
            received: Vec::new(),
            quiet_windows: 0,
        };
        Spin::new(watch)
    });
}

fn point(shard: u16, cpu: Option<CpuId>) {
    if let Some(runner) = CPUS.get(usize::from(shard)) {
        runner.store(cpu.map_or(ANY, |cpu| cpu.0 as u16), Ordering::Release);
    }
    if let Some(cpu) = cpu {
        let shards = SHARDS.of(cpu);
        shards.insert(CpuId(shard.into()), Ordering::Release);
    }
}

/// The CPU that runs a shard of the card; `None` where whichever waits does.
#[inline]
pub(crate) fn cpu_of(shard: u16) -> Option<CpuId> {
    let known = CPUS.get(usize::from(shard));
    let cpu = known.map_or(ANY, |cpu| cpu.load(Ordering::Acquire));
    (cpu != ANY).then_some(CpuId(cpu.into()))
}

/// Whether this CPU may run a shard of the card.
#[inline]
pub(crate) fn is_own(shard: u16) -> bool {
    cpu_of(shard).is_none_or(|cpu| cpu == mach::cpu::id())
}

/// The shards that this CPU runs.
#[inline]
pub(super) fn own() -> CpuSet {
    SHARDS.get().load(Ordering::Acquire)
}

/// Has the CPU of a shard run it soon.
pub(crate) fn call(shard: u16) {
    match cpu_of(shard) {
        Some(cpu) => raise_on(cpu, Softirq::Net),
        None => raise(Softirq::Net),
    }
}

/// From now on these CPUs run the card's shards, and no others; any do if none is named.
pub(crate) fn bind(named: CpuSet) {
    if let Some(watch) = WATCH.get() {
        watch.lock().bind(named);
    }
}

/// The pair of queues of a shard interrupted, on whichever CPU.
pub fn interrupted(shard: usize) {
    call(shard as u16);
}

/// Many frames came: whether so many CPUs are right is to be looked at.
#[inline]
pub(super) fn watch() {
    if !IS_ON.load(Ordering::Relaxed) {
        start();
    }
}

#[cold]
fn start() {
    if WATCH.get().is_some() && !IS_ON.swap(true, Ordering::Relaxed) {
        timer::add(mach::time::now() + WINDOW, Target::Call(Arc::new(Worker)));
    }
}

struct Worker;

impl Expire for Worker {
    fn expire(self: Arc<Self>, now: Instant) {
        let Some(watch) = WATCH.get() else { return };
        if watch.lock().look(now) {
            timer::add(now + WINDOW, Target::Call(self));
        } else {
            IS_ON.store(false, Ordering::Relaxed);
        }
    }
}

impl Watch {
    /// Looks at the window that ended now, and says whether another one is worth a look.
    fn look(&mut self, now: Instant) -> bool {
        let shards = stack::first().count();
        let cpus = 0..mach::cpu::count() as u32;
        let idle_ns: Vec<u64> = cpus.map(|cpu| cpu_use(CpuId(cpu)).idle_ns).collect();
        let received: Vec<u64> = (0..shards).map(received_of).collect();
        let passed_ns = self
            .since
            .replace(now)
            .map(|since| now.since(since).as_nanos());
        let idle_before = core::mem::replace(&mut self.idle_ns, idle_ns);
        let received_before = core::mem::replace(&mut self.received, received);
        let Some(passed_ns) = passed_ns.filter(|passed_ns| *passed_ns != 0) else {
            return true;
        };
        let busy: Vec<u32> = differences(&idle_before, &self.idle_ns)
            .map(|idle_ns| busy(idle_ns, passed_ns))
            .collect();
        let frames: Vec<u64> = differences(&received_before, &self.received).collect();
        if self.elastic.observe(&busy, &frames) {
            self.apply();
        }
        self.quiet_windows = match frames.iter().all(|count| *count == 0) {
            true => self.quiet_windows + 1,
            false => 0,
        };
        let goes_on = self.elastic.in_use() > 1 || self.quiet_windows < QUIET_WINDOWS;
        if !goes_on {
            (self.since, self.quiet_windows) = (None, 0);
        }
        goes_on
    }

    fn bind(&mut self, named: CpuSet) {
        if self.named == named {
            return;
        }
        self.named = named;
        self.elastic.bind(named);
        match stack::first().count() {
            1 if named.is_empty() => self.lead(0, CpuId(0), None),
            1 => self.apply(),
            _ => {
                self.apply();
                watch();
            }
        }
    }

    fn apply(&self) {
        for (shard, cpu) in (0..).zip(self.elastic.runners()) {
            let cpu = CpuId((*cpu).into());
            if cpu_of(shard) != Some(cpu) {
                self.lead(shard, cpu, Some(cpu));
            }
        }
    }

    /// A shard's interrupt goes to `interrupted` from now on, and `runner` runs it.
    fn lead(&self, shard: u16, interrupted: CpuId, runner: Option<CpuId>) {
        (self.lead_interrupt)(shard, interrupted);
        hand_over(shard, runner);
    }
}

fn differences(before: &[u64], now: &[u64]) -> impl Iterator<Item = u64> {
    before
        .iter()
        .zip(now)
        .map(|(before, now)| now.saturating_sub(*before))
}

/// How busy a CPU was, in thousandths.
fn busy(idle_ns: u64, passed_ns: u64) -> u32 {
    let idle = idle_ns.saturating_mul(WHOLE.into()) / passed_ns;
    WHOLE.saturating_sub(u32::try_from(idle).unwrap_or(WHOLE))
}

fn received_of(shard: u16) -> u64 {
    super::ring::of_shard(shard).map_or(0, super::ring::Ring::received)
}

/// From now on `cpu` runs `shard`, or any CPU does.
fn hand_over(shard: u16, cpu: Option<CpuId>) {
    stack::first().with_shard(shard, |_, link| {
        if let Some(old) = cpu_of(shard) {
            let shards = SHARDS.of(old);
            shards.remove(CpuId(shard.into()), Ordering::Release);
        }
        point(shard, cpu);
        // It may be the old CPU's to raise.
        alarm::forget(link);
    });
    call(shard);
}
