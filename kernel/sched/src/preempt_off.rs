//! How long a CPU is in the kernel without a chance to run another thread (Linux's preemptoff).
//!
//! The kernel is never preempted and runs with interrupts closed, so what stands between two
//! chances to reschedule is what everybody else may have to wait. Each such *stretch* is
//! measured, always: it begins when the kernel is entered, when a thread gets the CPU, or at
//! a resched point ([`crate::resched_point`]), and ends at the next of these or where the
//! kernel is left. Its length goes into a histogram of its CPU; a long one also says
//! what the CPU was about.
//!
//! Lengths are ticks of the time-stamp counter; under QEMU's `-icount shift=0` these are
//! instructions. A measurement costs two reads of it.
//!
//! Not here: the start of the machine, which no thread waits for.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use mach::cpu::PerCpu;
use mach::time::cycles;

pub use crate::cause::Cause;
use crate::cause::{CAUSES, CurrentCause};

/// Classes of lengths: number `n` counts those in `[2^n, 2^(n+1))`, the last one all above.
pub const CLASSES: usize = 36;
/// Whoever is longer is looked at by its cause.
const LONG_TICKS: u64 = 1 << 15;

/// In place of a start, while a CPU does not run threads yet.
const NOT_YET: u64 = 0;

struct Measure {
    start: AtomicU64,
    /// What the running thread is in the kernel for.
    cause: CurrentCause,
    /// For each power of two, so that no length need be compared with the last class.
    counts: [AtomicU64; u64::BITS as usize],
}

/// Each CPU writes its own.
static MEASURES: PerCpu<Measure> = PerCpu::new(|| Measure {
    start: AtomicU64::new(NOT_YET),
    cause: CurrentCause::new(),
    counts: [const { AtomicU64::new(0) }; u64::BITS as usize],
});

#[inline]
fn own() -> &'static Measure {
    MEASURES.get()
}

/// The longest stretch of each cause, of those that were long. Of all CPUs, for /proc/resched.
static LONGEST: [AtomicU64; CAUSES] = [const { AtomicU64::new(0) }; CAUSES];

/// The kernel is entered, or the thread goes about something else on the way out.
#[inline]
pub fn begin(cause: Cause) {
    let measure = own();
    measure.cause.set(cause);
    measure.start.store(cycles(), Relaxed);
}

/// Behind this an interrupt can come.
#[inline]
pub fn end() {
    let measure = own();
    let start = measure.start.load(Relaxed);
    if start != NOT_YET {
        measure.count(None, cycles().wrapping_sub(start));
    }
}

/// One stretch ends, the next one begins at the same moment.
#[inline]
fn turn(softirq: Option<Cause>) {
    let measure = own();
    let start = measure.start.load(Relaxed);
    if start != NOT_YET {
        let now = cycles();
        measure.start.store(now, Relaxed);
        measure.count(softirq, now.wrapping_sub(start));
    }
}

impl Measure {
    /// A stretch took so many ticks.
    #[inline]
    fn count(&self, softirq: Option<Cause>, ticks: u64) {
        // tidy: a logarithm is less than the bits.
        let slot = &self.counts[(ticks | 1).ilog2() as usize];
        // Only this CPU writes.
        slot.store(slot.load(Relaxed) + 1, Relaxed);
        if ticks >= LONG_TICKS {
            note_long(softirq, ticks);
        }
    }
}

#[cold]
fn note_long(softirq: Option<Cause>, ticks: u64) {
    let cause = softirq.unwrap_or_else(|| own().cause.get());
    LONGEST[cause.index()].fetch_max(ticks, Relaxed);
}

/// The thread may leave the CPU here, or does.
pub(crate) fn mark() {
    turn(None);
}

/// The same, as a thread that is in the kernel for `from` makes way for one that is for `to`.
#[inline]
pub(crate) fn switch(from: &CurrentCause, to: &CurrentCause) {
    mark();
    let cause = &own().cause;
    from.set(cause.get());
    cause.set(to.get());
}

/// The work of a source of softirqs is done, which is a stretch of its own.
pub(crate) fn end_softirq(cause: Cause) {
    turn(Some(cause));
}

/// A thread has the CPU again after a wait in place.
pub(crate) fn resume() {
    if own().start.load(Relaxed) != NOT_YET {
        start();
    }
}

/// This CPU's first stretch begins: it is there for threads from now on.
pub(crate) fn start() {
    own().start.store(cycles(), Relaxed);
}

/// Ticks since the last chance to reschedule.
pub(crate) fn ticks() -> u64 {
    cycles().wrapping_sub(own().start.load(Relaxed))
}

/// How many stretches of each class all CPUs have had.
pub fn histogram() -> [u64; CLASSES] {
    let mut sums = [0; CLASSES];
    for measure in mach::cpu::all().iter().map(|cpu| MEASURES.of(cpu)) {
        for (power, slot) in measure.counts.iter().enumerate() {
            sums[power.min(CLASSES - 1)] += slot.load(Relaxed);
        }
    }
    sums
}

/// Causes of long stretches with the longest of each, in ticks.
pub fn longest() -> impl Iterator<Item = (Cause, u64)> {
    let all = LONGEST.iter().map(|ticks| ticks.load(Relaxed));
    Cause::all().zip(all).filter(|(_, ticks)| *ticks != 0)
}
