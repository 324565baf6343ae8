//! What the scheduler knows of one thread, its part in `dispatch` among it.

use alloc::sync::Arc;
use core::ops::Deref;
use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use base::{CpuId, Instant};
use dispatch::{RunState, SchedEntity, State};
use mach::cpu::PerCpu;
use mach::sync::Spin;
use mach::task::Context;

use crate::cause::CurrentCause;
use crate::life::Life;
use crate::{Flags, Runnable, budget};

/// Why a thread leaves its CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Leave {
    /// It waits for something, or has ended.
    ToWait,
    /// It makes way for others.
    ToOthers,
}

/// The scheduler's part of a thread.
pub struct Entity {
    id: AtomicU32,
    /// Its registers and kernel stack.
    pub context: Context,
    flags: AtomicU32,
    /// Flags that it gets whenever it comes back to a CPU.
    flags_of_switch: AtomicU32,
    /// The thread whose entity this is, while it waits; nothing else is locked meanwhile.
    whole: Spin<Option<Arc<dyn Runnable>>>,
    pub(crate) state: RunState<AtomicUsize>,
    /// Where it stands among those who want a CPU.
    sched: SchedEntity,
    /// Where its time goes.
    pub life: Life,
    /// What it is in the kernel for.
    pub(crate) cause: CurrentCause,
    switches_voluntary: AtomicU64,
    switches_forced: AtomicU64,
    migrations: AtomicU64,
    /// Page faults: those that waited for nothing, and those that did.
    faults: [AtomicU64; 2],
}

/// The same of each CPU.
struct CpuCounts {
    migrations: AtomicU64,
    faults: [AtomicU64; 2],
}

/// Each CPU's own.
static COUNTS: PerCpu<CpuCounts> = PerCpu::new(|| CpuCounts {
    migrations: AtomicU64::new(0),
    faults: [const { AtomicU64::new(0) }; 2],
});

/// Threads that came to `cpu` from another.
pub fn migrations_of(cpu: CpuId) -> u64 {
    COUNTS.of(cpu).migrations.load(Ordering::Relaxed)
}

/// Page faults on `cpu`: those that waited for nothing, and those that did.
pub fn faults_of(cpu: CpuId) -> [u64; 2] {
    let faults = &COUNTS.of(cpu).faults;
    faults.each_ref().map(|count| count.load(Ordering::Relaxed))
}

/// One more, by the only one who counts there.
fn count(counter: &AtomicU64) {
    counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}

impl Deref for Entity {
    type Target = SchedEntity;

    #[inline(always)]
    fn deref(&self) -> &SchedEntity {
        &self.sched
    }
}

impl Entity {
    /// Of a thread with this number, which starts from `context` once it is launched. Number 0 is
    /// of threads without a program.
    pub fn new(id: u32, context: Context) -> Self {
        Self {
            id: AtomicU32::new(id),
            context,
            flags: AtomicU32::new(0),
            flags_of_switch: AtomicU32::new(0),
            whole: Spin::new(None),
            state: RunState::default(),
            sched: SchedEntity::new(mach::cpu::id()),
            life: Life::new(mach::time::now()),
            cause: CurrentCause::new(),
            switches_voluntary: AtomicU64::new(0),
            switches_forced: AtomicU64::new(0),
            migrations: AtomicU64::new(0),
            faults: [const { AtomicU64::new(0) }; 2],
        }
    }

    /// Its number.
    #[inline]
    pub fn id(&self) -> u32 {
        self.id.load(Ordering::Relaxed)
    }

    /// Gives it another number.
    pub fn set_id(&self, id: u32) {
        self.id.store(id, Ordering::Relaxed);
    }

    /// The whole thread, which gets a CPU or is over.
    #[inline]
    pub(crate) fn take_whole(&self) -> Arc<dyn Runnable> {
        match self.whole.lock().take() {
            Some(thread) => thread,
            None => unreachable!("a thread that does not run is kept by its entity"),
        }
    }

    /// Keeps the whole thread, which does not run yet, or any more.
    #[inline]
    pub(crate) fn keep_whole(&self, thread: Arc<dyn Runnable>) {
        let before = self.whole.lock().replace(thread);
        debug_assert!(before.is_none(), "a thread is kept once");
    }

    /// Reasons to stop before user mode.
    #[inline]
    pub fn flags(&self) -> Flags {
        Flags::from_bits_retain(self.flags.load(Ordering::Acquire))
    }

    /// Adds reasons. If the thread runs on another CPU, the caller interrupts it next
    /// ([`crate::interrupt`]).
    pub fn set_flags(&self, flags: Flags) {
        self.flags.fetch_or(flags.bits(), Ordering::SeqCst);
        mach::task::look_before_user();
    }

    /// Takes reasons away.
    #[inline]
    pub fn clear_flags(&self, flags: Flags) {
        self.flags.fetch_and(!flags.bits(), Ordering::AcqRel);
    }

    /// The thread got a CPU, or an interrupt ended its wait in place: reasons that came
    /// meanwhile must not be missed on the way to user mode. The exchange orders the look
    /// after the state that says so: whoever adds a reason and then sees the thread off the
    /// CPU has added it early enough.
    #[inline]
    pub(crate) fn look_at_flags(&self) {
        if self.flags.fetch_or(0, Ordering::SeqCst) != 0 {
            mach::task::look_before_user();
        }
    }

    /// It is to have `flags` whenever it comes back to a CPU, from now on and now.
    pub fn set_flags_of_switch(&self, flags: Flags) {
        self.flags_of_switch.store(flags.bits(), Ordering::Relaxed);
        self.note_switch();
    }

    /// The thread left a CPU and came back to one.
    #[inline]
    pub fn note_switch(&self) {
        let flags = self.flags_of_switch.load(Ordering::Relaxed);
        if flags != 0 {
            self.set_flags(Flags::from_bits_retain(flags));
        }
    }

    /// Whether a blocking call must end because of a signal, the process' end, or a tracer.
    #[inline]
    pub fn has_deliverable_signal(&self) -> bool {
        self.flags().intersects(Flags::ENDS_WAIT)
    }

    /// The state now; it may change at once.
    pub fn state(&self) -> State {
        self.state.get()
    }

    /// CPU time it has used up to `now`, in nanoseconds.
    pub fn cpu_ns(&self, now: Instant) -> u64 {
        self.life.sampled(now).run_ns
    }

    /// How often it left a CPU so far: (because it waited, for others).
    pub fn switches(&self) -> (u64, u64) {
        (
            self.switches_voluntary.load(Ordering::Relaxed),
            self.switches_forced.load(Ordering::Relaxed),
        )
    }

    pub(crate) fn count_switch(&self, why: Leave) {
        let counter = match why {
            Leave::ToWait => &self.switches_voluntary,
            Leave::ToOthers => &self.switches_forced,
        };
        count(counter);
    }

    /// How often it came to another CPU.
    pub fn migrations(&self) -> u64 {
        self.migrations.load(Ordering::Relaxed)
    }

    /// Its page faults: those that waited for nothing, and those that did.
    pub fn faults(&self) -> [u64; 2] {
        self.faults
            .each_ref()
            .map(|count| count.load(Ordering::Relaxed))
    }

    /// The running thread has resolved a page fault.
    pub fn count_fault(&self, is_slow: bool) {
        count(&self.faults[usize::from(is_slow)]);
        count(&COUNTS.get().faults[usize::from(is_slow)]);
    }

    pub(crate) fn begin_slice(&self, now: Instant, cpu: CpuId) {
        self.state.run();
        if self.sched.move_to(cpu) {
            count(&self.migrations);
            count(&COUNTS.get().migrations);
        }
        if self.rank().is_realtime() {
            budget::begin(now);
        }
        self.life.run(now);
    }

    /// It leaves the CPU, or waits in place.
    pub(crate) fn end_slice(&self, now: Instant, why: Leave) {
        let used_ns = match why {
            Leave::ToWait => {
                self.since_wait.reset();
                self.life.wait(now)
            }
            Leave::ToOthers => self.life.want_cpu(now),
        };
        if self.rank().is_realtime() {
            budget::count(now);
        }
        self.charge(used_ns);
    }
}
