//! Who uses a CPU's time: the program, the kernel, nobody.
//!
//! Idle time is exact, because the clock is read around each halt anyway. Time that is used is
//! sampled: at every [`PERIOD`] of the machine's clock somebody is found running, and
//! `accounting` divides the exact run time by these counts. An idle CPU is not interrupted
//! for a sample: the moments that pass during a halt are nobody's.
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
use core::time::Duration;

use accounting::{CpuTime, Sampled, Split};
use base::{CpuId, Instant};
use mach::cpu::PerCpu;
use mach::sync::Spin;

use crate::task::current;

/// Time between samples of a CPU that works.
pub const PERIOD: Duration = Duration::from_millis(4);
const PERIOD_NS: u64 = PERIOD.as_nanos() as u64;

/// Whom a sample found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// The program.
    User,
    /// The kernel.
    System,
}

/// What one CPU did since it started.
struct Counts {
    started: Instant,
    user: u64,
    system: u64,
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

static NEXT: PerCpu<Cell<Instant>> = PerCpu::new(|| Cell::new(after(mach::time::now())));
static COUNTS: PerCpu<Spin<Counts>> = PerCpu::new(|| {
    Spin::new(Counts {
        started: mach::time::now(),
        user: 0,
        system: 0,
        idle_ns: 0,
        idle_since: None,
        split: Split::new(),
    })
});

/// The first sample's moment after `now`. All CPUs have the same ones, so that what a
/// program does cannot move them.
fn after(now: Instant) -> Instant {
    Instant::from_nanos((now.as_nanos() / PERIOD_NS + 1) * PERIOD_NS)
}

/// When this CPU takes its next sample.
pub(super) fn next() -> Instant {
    NEXT.get().get()
}

/// Counts the samples that are due at `now` for the running thread, which was in `mode`.
#[inline]
pub(super) fn take(now: Instant, mode: Mode) {
    if next() <= now {
        count(now, mode);
    }
}

#[cold]
fn count(now: Instant, mode: Mode) {
    let due = now.since(next()).as_nanos() as u64 / PERIOD_NS + 1;
    NEXT.get().set(after(now));
    current().sched.count_samples(mode, due);
    let mut counts = COUNTS.get().lock();
    match mode {
        Mode::User => counts.user += due,
        Mode::System => counts.system += due,
    }
}

/// An interrupt came while a program ran, or when the kernel returned to it from a call.
pub(super) fn note_interrupt(behind_call: bool) {
    let mode = if behind_call {
        Mode::System
    } else {
        Mode::User
    };
    take(mach::time::now(), mode);
}

/// The kernel returns to a program by the long way.
pub fn note_return() {
    take(mach::time::now(), Mode::System);
}

/// The CPU halts.
pub(super) fn begin_idle(now: Instant) {
    take(now, Mode::System);
    COUNTS.get().lock().idle_since = Some(now);
}

/// The halt has ended.
pub(super) fn end_idle(now: Instant) {
    NEXT.get().set(after(now));
    let mut counts = COUNTS.get().lock();
    if let Some(since) = counts.idle_since.take() {
        counts.idle_ns += now.since(since).as_nanos() as u64;
    }
}

/// What `cpu` did up to now. What was before its start counts as idle.
pub fn cpu_use(cpu: CpuId) -> CpuUse {
    let mut counts = COUNTS.of(cpu).lock();
    let now = mach::time::now();
    let halted = counts.idle_since.map_or(Duration::ZERO, |at| now.since(at));
    let idle_ns = counts.idle_ns + halted.as_nanos() as u64;
    let up_ns = now.since(counts.started).as_nanos() as u64;
    let measured = Sampled {
        run_ns: up_ns.saturating_sub(idle_ns),
        user: counts.user,
        system: counts.system,
    };
    let busy = counts.split.divide(measured);
    CpuUse {
        busy,
        idle_ns: now.as_nanos().saturating_sub(busy.total_ns()),
    }
}
