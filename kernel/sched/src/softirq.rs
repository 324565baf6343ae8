//! Work that an interrupt starts and somebody else finishes.
//!
//! An interrupt handler only sets a bit of its CPU; the work runs in bounded batches on
//! the way back to user mode and before the CPU halts. A source may also be *polled*:
//! before a halt each source arms its doorbell and says whether work came meanwhile.

use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use base::CpuId;
use mach::cpu::PerCpu;
use mach::sync::Once;

use crate::cause::{Cause, SOFTIRQS};
use crate::preempt_off;

/// The sources of deferred work, in the order in which they run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Softirq {
    /// A deadline of this CPU has passed.
    Timer,
    /// The network device has something for us.
    Net,
    /// A volume answered.
    Volume,
    /// A disk ended something.
    Block,
    /// The console has input, or room for output.
    Console,
    /// Files became ready whose owners hear of it by a signal.
    AsyncIo,
    /// Pages wait to be given back.
    Garbage,
    /// The host took or gave memory, or asks for some.
    Balloon,
}

impl Softirq {
    const ALL: [Self; 8] = [
        Self::Timer,
        Self::Net,
        Self::Volume,
        Self::Block,
        Self::Console,
        Self::AsyncIo,
        Self::Garbage,
        Self::Balloon,
    ];

    fn from_number(number: usize) -> Option<Self> {
        Self::ALL.get(number).copied()
    }
}

/// How many sources there are.
const COUNT: usize = Softirq::ALL.len();
const _: () = assert!(COUNT == SOFTIRQS, "each source is a cause");

/// What a source does.
#[derive(Clone, Copy)]
pub struct Work {
    /// Does a bounded batch; it raises itself again if more is left.
    pub run: fn(),
    /// For a source that does not raise an interrupt, or itself, for all that comes.
    pub look: Option<Look>,
}

/// How a source is looked at before a halt.
#[derive(Clone, Copy)]
pub struct Look {
    /// Without a doorbell: true if there is work, which is raised.
    pub poll: fn() -> bool,
    /// Arms the doorbell: false if there is work already.
    pub prepare_idle: fn() -> bool,
}

/// Said at boot: a bit means the same work on all CPUs.
static SOURCES: [Once<Work>; COUNT] = [const { Once::new() }; COUNT];
/// Each CPU's own bits.
static PENDING: PerCpu<AtomicU32> = PerCpu::new(|| AtomicU32::new(0));
/// What is to run before the CPU halts, or at its next sample.
static BY_REST: PerCpu<AtomicU32> = PerCpu::new(|| AtomicU32::new(0));
/// Whether this CPU runs a source, which may hold what the next one takes.
static IS_RUNNING: PerCpu<AtomicBool> = PerCpu::new(|| AtomicBool::new(false));

/// Those that are looked at, by their bits: most halts have few to look at.
static LOOKED_AT: AtomicU32 = AtomicU32::new(0);

/// Says what `source` does; once at boot.
pub fn register_softirq(source: Softirq, work: Work) {
    let work = SOURCES[source as usize].call_once(|| work);
    if work.look.is_some() {
        LOOKED_AT.fetch_or(1 << source as u32, Ordering::Release);
    }
}

/// The looks of all that are looked at.
#[inline]
fn looks() -> impl Iterator<Item = Look> {
    let mut bits = LOOKED_AT.load(Ordering::Acquire);
    core::iter::from_fn(move || {
        let work = SOURCES.get(bits.trailing_zeros() as usize)?;
        bits &= bits - 1;
        Some(work.get()?.look)
    })
    .flatten()
}

/// An interrupt handler, whose argument is the number of the source (`source as usize`).
pub fn raise_numbered(number: usize) {
    if let Some(source) = Softirq::from_number(number) {
        raise(source);
    }
}

/// Asks for a run of `source` on this CPU.
pub fn raise(source: Softirq) {
    PENDING
        .get()
        .fetch_or(1 << source as u32, Ordering::Relaxed);
    mach::task::look_before_user();
}

/// Asks for a run of `source` on this CPU before it halts, and at its next sample at the
/// latest: what is not urgent costs neither an alarm nor a look on the way to the program.
#[inline]
pub fn raise_by_rest(source: Softirq) {
    BY_REST
        .get()
        .fetch_or(1 << source as u32, Ordering::Relaxed);
}

/// The work of `source` that was to be done by the next rest is done.
#[inline]
pub fn forget_rest(source: Softirq) {
    let bits = BY_REST.get();
    if bits.load(Ordering::Relaxed) != 0 {
        bits.fetch_and(!(1 << source as u32), Ordering::Relaxed);
    }
}

/// The CPU is about to halt or takes a sample: what was to be done by now is asked for.
pub(crate) fn note_rest() {
    if BY_REST.get().load(Ordering::Relaxed) != 0 {
        let due = BY_REST.get().swap(0, Ordering::Relaxed);
        PENDING.get().fetch_or(due, Ordering::Relaxed);
        mach::task::look_before_user();
    }
}

/// Asks for a run of `source` on `cpu`, which is brought in from its program or its halt.
pub fn raise_on(cpu: CpuId, source: Softirq) {
    if cpu == mach::cpu::id() {
        return raise(source);
    }
    PENDING
        .of(cpu)
        .fetch_or(1 << source as u32, Ordering::Release);
    mach::cpu::kick(cpu);
}

/// Runs what is pending on this CPU, each source once; false if nothing was.
pub fn run_softirqs() -> bool {
    let pending = PENDING.get();
    if pending.load(Ordering::Relaxed) == 0 {
        return false;
    }
    IS_RUNNING.get().store(true, Ordering::Relaxed);
    let mut bits = pending.swap(0, Ordering::Acquire);
    while let Some(&source) = Softirq::ALL.get(bits.trailing_zeros() as usize) {
        bits &= bits - 1;
        if let Some(work) = SOURCES[source as usize].get() {
            (work.run)();
            preempt_off::end_softirq(Cause::softirq(source as u32));
        }
    }
    IS_RUNNING.get().store(false, Ordering::Relaxed);
    true
}

/// Whether a source runs on this CPU: it holds locks, and gives way to nobody.
pub(crate) fn is_running() -> bool {
    IS_RUNNING.get().load(Ordering::Relaxed)
}

/// Looks at all sources that can be looked at: true if there is work on this CPU.
pub(crate) fn poll() -> bool {
    let found = looks().any(|look| (look.poll)());
    found || PENDING.get().load(Ordering::Relaxed) != 0
}

/// Arms all doorbells: true if the CPU may halt.
pub(crate) fn prepare_idle() -> bool {
    let quiet = looks().all(|look| (look.prepare_idle)());
    quiet && PENDING.get().load(Ordering::Relaxed) == 0
}
