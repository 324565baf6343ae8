//! Who uses a CPU's time: the program, the kernel in one microstate or another, nobody.
//!
//! Idle time is exact, because the clock is read around each halt anyway. Time that is used is
//! sampled: at every [`period`] of the machine's clock somebody is found running, and
//! `accounting` divides the exact run time by these counts. An idle CPU is not interrupted
//! for a sample: the moments that pass during a halt are nobody's. One that halts again and
//! again is sampled at every [`REST_PERIODS`]th moment only, which then counts for as many:
//! its alarms would go off in halts, and cost a server that waits for each request more
//! than the request.
//!
//! The kernel runs with interrupts closed, so the timer alone would find programs only.
//! There are three ways to notice that a moment has passed, and each knows who ran:
//!
//! - An interrupt comes in the middle of a program: the program. Where it comes right behind
//!   the instruction of a system call it waited for the kernel to return: the kernel. That is
//!   seen in the registers, for SYSRET leaves the address it returns to in RCX.
//! - The kernel leaves by the long way (faults, signals, deferred work): the kernel, as what
//!   passed before it was entered is counted there.
//! - A thread leaves the CPU, or the CPU halts: the kernel did that.
//!
//! So a system call that returns by the short way costs nothing for being measured.
//! Deferred work of interrupts counts as the kernel's, for the thread that it interrupted.
//!
//! Lock order: a CPU's counts are innermost.

use core::cell::Cell;
use core::ops::RangeInclusive;
use core::sync::atomic::{AtomicU64, Ordering};

use accounting::{CpuTime, MODES, Sampled, Split};
use base::{CpuId, Duration, Instant};
use mach::cpu::PerCpu;
use mach::sync::Spin;

use crate::life::Found;
use crate::{Entity, Mstate, current};

/// Time between samples of a CPU that works: the shortest, unless alarms cost much here.
const PERIODS: RangeInclusive<Duration> = Duration::from_millis(4)..=Duration::from_millis(16);
/// The administrator's, for all CPUs.
static PERIOD_NS: AtomicU64 = AtomicU64::new(PERIODS.start().as_nanos());

/// Moments between samples of a CPU that has halted since the last one.
const REST_PERIODS: u64 = 4;

/// What one CPU did since it started.
struct Counts {
    started: Instant,
    samples: [u64; MODES],
    idle_ns: u64,
    idle_since: Option<Instant>,
    split: Split,
}

/// How the time of a CPU was used, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CpuUse {
    /// By programs and the kernel.
    pub busy: CpuTime,
    /// By nobody.
    pub idle_ns: u64,
}

/// Each CPU's own.
static NEXT: PerCpu<Cell<Next>> = PerCpu::new(|| Cell::new(Next::after(mach::time::now(), 1)));
/// Each CPU's own.
static COUNTS: PerCpu<Spin<Counts>> = PerCpu::new(|| {
    Spin::new(Counts {
        started: mach::time::now(),
        samples: [0; MODES],
        idle_ns: 0,
        idle_since: None,
        split: Split::new(),
    })
});

/// Chooses the time between samples; once at boot. Each is a multiple of the shorter ones, so that programs whose
/// alarms go off at whole multiples of the longest cause none of their own.
pub(crate) fn init() {
    let shortest_ns = PERIODS.start().as_nanos();
    let affordable_ns = mach::time::affordable_interval(PERIODS).as_nanos();
    let times = affordable_ns.div_ceil(shortest_ns).next_power_of_two();
    PERIOD_NS.store(shortest_ns * times, Ordering::Relaxed);
}

/// Time between samples of a CPU that works.
#[inline]
pub fn period() -> Duration {
    Duration::from_nanos(PERIOD_NS.load(Ordering::Relaxed))
}

/// A sample to come.
#[derive(Clone, Copy)]
struct Next {
    at: Instant,
    /// Moments that it counts for.
    weight: u64,
}

impl Next {
    /// The first one after `now` of those at every `weight`th moment. All CPUs have the same
    /// ones, so that what a program does cannot move them.
    fn after(now: Instant, weight: u64) -> Self {
        let at = nth_moment_after(now, weight);
        Self { at, weight }
    }

    /// Moments that have passed at `now`, with those that it counts for.
    fn due(self, now: Instant) -> u64 {
        now.since(self.at).as_nanos() / period().as_nanos() + self.weight
    }
}

/// The first of every `weight`th moment after `time`.
fn nth_moment_after(time: Instant, weight: u64) -> Instant {
    let spacing_ns = period().as_nanos() * weight;
    Instant::from_nanos((time.as_nanos() / spacing_ns + 1) * spacing_ns)
}

/// The first moment after `time` at which CPUs that work take samples.
pub(crate) fn moment_after(time: Instant) -> Instant {
    nth_moment_after(time, 1)
}

/// The last moment of samples up to `deadline`, if it is after `now`, and else `deadline`: for alarms that may go off
/// earlier and then need no exit to a hypervisor of their own.
pub fn coalesced(deadline: Instant, now: Instant) -> Instant {
    let past_moment_ns = deadline.as_nanos() % period().as_nanos();
    let moment = Instant::from_nanos(deadline.as_nanos() - past_moment_ns);
    match moment > now {
        true => moment,
        false => deadline,
    }
}

/// When this CPU takes its next sample.
pub(crate) fn next() -> Instant {
    NEXT.get().get().at
}

/// Counts the samples that are due at `now` for the running thread, which was in `mode`.
#[inline]
pub(crate) fn take(now: Instant, found: Found) {
    if next() <= now {
        count(now, found);
    }
}

#[cold]
fn count(now: Instant, found: Found) {
    let due = NEXT.get().get().due(now);
    NEXT.get().set(Next::after(now, 1));
    crate::load::note(now);
    crate::softirq::note_rest();
    let me = current();
    let mode = me.life.count(found, due);
    if me.class.policy().is_realtime() {
        me.since_wait.count(due * period().as_nanos());
    }
    COUNTS.get().lock().samples[mode as usize] += due;
}

/// An interrupt came while a program ran, or when the kernel returned to it from a call.
pub(crate) fn note_interrupt(behind_call: bool) {
    let found = if behind_call {
        Found::Kernel
    } else {
        Found::Program
    };
    take(mach::time::now(), found);
}

/// The kernel returns to a program by the long way: whatever brought the thread here is
/// done.
pub fn note_return(thread: &Entity) {
    take(mach::time::now(), Found::Kernel);
    thread.life.set_mstate(Mstate::Call);
}

/// The CPU halts.
pub(crate) fn begin_idle(now: Instant) {
    take(now, Found::Kernel);
    COUNTS.get().lock().idle_since = Some(now);
}

/// The halt has ended.
pub(crate) fn end_idle(now: Instant) {
    NEXT.get().set(Next::after(now, REST_PERIODS));
    let mut counts = COUNTS.get().lock();
    if let Some(since) = counts.idle_since.take() {
        counts.idle_ns += now.since(since).as_nanos();
    }
}

/// What `cpu` did up to now. What was before its start counts as idle.
pub fn cpu_use(cpu: CpuId) -> CpuUse {
    let mut counts = COUNTS.of(cpu).lock();
    let now = mach::time::now();
    let halted = counts.idle_since.map_or(Duration::ZERO, |at| now.since(at));
    let idle_ns = counts.idle_ns + halted.as_nanos();
    let up_ns = now.since(counts.started).as_nanos();
    let measured = Sampled {
        run_ns: up_ns.saturating_sub(idle_ns),
        samples: counts.samples,
    };
    let busy = CpuTime::from(counts.split.divide(measured));
    CpuUse {
        busy,
        idle_ns: now.as_nanos().saturating_sub(busy.total_ns()),
    }
}
