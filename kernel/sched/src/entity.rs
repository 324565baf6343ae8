//! What the scheduler knows of one thread.
//!
//! The life of `state`, where P parks and W wakes:
//!
//! ```text
//!            P                switched away
//!  Running ─────▶ Parking ───────────────────▶ Parked
//!     │ W            │ W                          │ W
//!     ▼              ▼       switched away        ▼
//!  Notified      Awakened ───────────────────▶ Ready ──▶ Running
//!     │ P: returns at once, Running again        (on a run queue)
//! ```
//!
//! Invariant: a thread is on a run queue exactly while it is `Ready`, and becomes
//! `Ready` only after its registers are saved; so no CPU resumes a thread that another
//! still runs.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicI8, AtomicI64, AtomicU8, AtomicU32, AtomicU64, Ordering, fence};

use base::{CpuId, CpuSet, Instant, SharedCpuSet};
use mach::cpu::PerCpu;
use mach::sync::Spin;
use mach::task::Context;

use crate::budget;
use crate::class::{Class, Policy, Rank};
use crate::life::Life;
use crate::since_wait::SinceWait;
use crate::stretch::Business;
use crate::{Flags, Runnable};

/// Where a thread stands; the arrows are in the module's theory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum State {
    /// On a CPU.
    Running,
    /// On a CPU, and its next park returns at once.
    Notified,
    /// On a CPU, about to leave it.
    Parking,
    /// On a CPU, about to leave it, but woken already.
    Awakened,
    /// Waits for [`crate::wake`].
    Parked,
    /// Waits for a CPU.
    Ready,
    /// Will never run again.
    Dead,
}

impl State {
    const ALL: [Self; 7] = [
        Self::Running,
        Self::Notified,
        Self::Parking,
        Self::Awakened,
        Self::Parked,
        Self::Ready,
        Self::Dead,
    ];

    fn from_bits(bits: u8) -> Self {
        Self::ALL[usize::from(bits)]
    }
}

/// Why a thread leaves its CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Leave {
    /// It waits for something, or has ended.
    ToWait,
    /// It makes way for others.
    ToOthers,
}

/// What a thread is once it has left its CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Left {
    /// It will never run again.
    Over,
    /// It waits for a wake-up.
    Waits,
    /// It was to wait, but was woken: it goes on a run queue.
    Woken,
    /// It made way, and has wanted a CPU since then: it goes on a run queue.
    MadeWay,
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
    state: AtomicU8,
    nice: AtomicI8,
    last_cpu: AtomicU32,
    affinity: SharedCpuSet,
    vruntime_ns: AtomicU64,
    /// By which rules it competes.
    pub class: Class,
    /// Where it stands on a run queue, changed with that locked: the CPU and the rank
    /// ([`NO_PLACE`] for none), and the order.
    place: AtomicU32,
    order: AtomicI64,
    /// Where its time goes.
    pub life: Life,
    /// What it is in the kernel for.
    pub(crate) business: Business,
    /// What it has used without a wait, if it is real-time.
    pub since_wait: SinceWait,
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

/// On no run queue.
const NO_PLACE: u32 = u32::MAX;

/// What [`Policy::Idle`] takes in place of [`VIRTUAL_PER_REAL`]: a three hundredth of nice 0.
const VIRTUAL_PER_REAL_IDLE: u32 = 1024 * 1024 / 3;

/// Nanoseconds of virtual run time for each nanosecond of real time, in 1/1024, by nice
/// value from -20 to 19: each step is a tenth more or less CPU against its neighbour.
const VIRTUAL_PER_REAL: [u32; 40] = virtual_per_real();

const fn virtual_per_real() -> [u32; 40] {
    let mut table = [1024; 40];
    let mut step = 1;
    while step <= 20 {
        table[20 - step] = table[21 - step] * 4 / 5;
        if step < 20 {
            table[20 + step] = table[19 + step] * 5 / 4;
        }
        step += 1;
    }
    table
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
            state: AtomicU8::new(State::Ready as u8),
            nice: AtomicI8::new(0),
            last_cpu: AtomicU32::new(mach::cpu::id().0),
            affinity: SharedCpuSet::new(CpuSet::ALL),
            vruntime_ns: AtomicU64::new(0),
            class: Class::default(),
            place: AtomicU32::new(NO_PLACE),
            order: AtomicI64::new(0),
            life: Life::new(mach::time::now()),
            business: Business::default(),
            since_wait: SinceWait::default(),
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
        State::from_bits(self.state.load(Ordering::Acquire))
    }

    /// An exchange, so that what the thread reads afterwards is not older than the change:
    /// wake-ups that it ignored up to then were for something that it now sees.
    pub(crate) fn set_state(&self, state: State) {
        self.state.swap(state as u8, Ordering::SeqCst);
    }

    fn change(&self, from: State, to: State) -> bool {
        self.state
            .compare_exchange(from as u8, to as u8, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }

    /// Announces a park; false if a wake-up came first and is hereby used up.
    pub(crate) fn begin_park(&self) -> bool {
        self.change(State::Running, State::Parking) || {
            self.set_state(State::Running);
            false
        }
    }

    /// The registers are saved; what becomes of the thread.
    #[inline]
    pub(crate) fn leave_cpu(&self) -> Left {
        let before = self.state();
        if before == State::Dead {
            return Left::Over;
        }
        if before == State::Parking && self.change(State::Parking, State::Parked) {
            return Left::Waits;
        }
        self.set_state(State::Ready);
        match before {
            State::Running | State::Notified => Left::MadeWay,
            _ => Left::Woken,
        }
    }

    /// Whether a wake-up came while the thread waits in place.
    pub(crate) fn is_awakened(&self) -> bool {
        self.state() == State::Awakened
    }

    /// Takes note of a wake-up: true if the caller must put it on a run queue.
    pub(crate) fn on_wake(&self) -> bool {
        // What the thread is woken for must be visible before its state is read: if it
        // has another wake-up to come, this one is ignored.
        fence(Ordering::SeqCst);
        loop {
            let (to, enqueue) = match self.state() {
                State::Running => (State::Notified, false),
                State::Parking => (State::Awakened, false),
                State::Parked => (State::Ready, true),
                _ => return false,
            };
            let from = match to {
                State::Notified => State::Running,
                State::Awakened => State::Parking,
                _ => State::Parked,
            };
            if self.change(from, to) {
                if to == State::Awakened {
                    // It may wait in place on another CPU, halted.
                    self.kick_if_elsewhere();
                }
                return enqueue;
            }
        }
    }

    fn kick_if_elsewhere(&self) {
        let cpu = self.last_cpu();
        if cpu != mach::cpu::id() {
            mach::cpu::kick(cpu);
        }
    }

    /// The CPU it runs on or ran on last.
    pub fn last_cpu(&self) -> CpuId {
        CpuId(self.last_cpu.load(Ordering::Relaxed))
    }

    /// The CPUs it may run on.
    pub fn affinity(&self) -> CpuSet {
        self.affinity.load(Ordering::Relaxed)
    }

    /// Restricts it to these CPUs, from its next switch on; at least one of `cpus` exists.
    pub fn set_affinity(&self, cpus: CpuSet) {
        self.affinity.store(cpus, Ordering::Relaxed);
    }

    /// Whether it may run on `cpu`.
    pub fn allows(&self, cpu: CpuId) -> bool {
        self.affinity.contains(cpu, Ordering::Relaxed)
    }

    /// Its nice value, -20 to 19.
    pub fn nice(&self) -> i8 {
        self.nice.load(Ordering::Relaxed)
    }

    /// Sets the nice value, brought into -20 to 19.
    pub fn set_nice(&self, nice: i8) {
        self.nice.store(nice.clamp(-20, 19), Ordering::Relaxed);
    }

    /// Virtual run time: real time scaled by weight.
    pub(crate) fn vruntime_ns(&self) -> u64 {
        self.vruntime_ns.load(Ordering::Relaxed)
    }

    pub(crate) fn set_vruntime_ns(&self, nanos: u64) {
        self.vruntime_ns.store(nanos, Ordering::Relaxed);
    }

    /// Where it stands on a run queue: of which CPU, with which rank, in which order.
    pub(crate) fn place(&self) -> Option<(CpuId, Rank, i64)> {
        let place = self.place.load(Ordering::Acquire);
        let order = self.order.load(Ordering::Relaxed);
        let rank = Rank::from_byte(place as u8);
        (place != NO_PLACE).then_some((CpuId(place >> 8), rank, order))
    }

    pub(crate) fn set_place(&self, place: Option<(CpuId, Rank, i64)>) {
        let (bits, order) = match place {
            Some((cpu, rank, order)) => (cpu.0 << 8 | u32::from(rank.to_byte()), order),
            None => (NO_PLACE, 0),
        };
        self.order.store(order, Ordering::Relaxed);
        self.place.store(bits, Ordering::Release);
    }

    /// CPU time it has used up to `now`, in nanoseconds.
    pub fn cpu_ns(&self, now: Instant) -> u64 {
        self.life.sampled(now).run_ns
    }

    /// Whether it works, and does not wait in place.
    pub(crate) fn works(&self) -> bool {
        matches!(self.state(), State::Running | State::Notified)
    }

    /// Whether a CPU runs it or is about to leave it.
    pub(crate) fn is_on_cpu(&self) -> bool {
        matches!(
            self.state(),
            State::Running | State::Notified | State::Parking | State::Awakened
        )
    }

    /// A new thread starts with its maker's policy, nice value, affinity and virtual run time;
    /// where the maker asked for it, without what only the maker may.
    pub fn inherit(&self, maker: &Self) {
        let resets = maker.class.resets_on_fork();
        let policy = maker.class.policy();
        let (policy, nice) = match (resets, policy.is_realtime()) {
            (false, _) => (policy, maker.nice()),
            (true, true) => (Policy::Normal, 0),
            (true, false) => (policy, maker.nice().max(0)),
        };
        self.class.set_policy(policy);
        self.set_nice(nice);
        self.set_affinity(maker.affinity());
        self.set_vruntime_ns(maker.vruntime_ns());
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
        self.set_state(State::Running);
        if self.last_cpu() != cpu {
            self.last_cpu.store(cpu.0, Ordering::Relaxed);
            count(&self.migrations);
            count(&COUNTS.get().migrations);
        }
        if self.class.rank().is_realtime() {
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
        if self.class.rank().is_realtime() {
            budget::count(now);
            self.class.count_round(used_ns);
        } else {
            self.set_vruntime_ns(self.vruntime_ns() + self.scale(used_ns));
        }
    }

    fn scale(&self, nanos: u64) -> u64 {
        let index = usize::from((self.nice() + 20).unsigned_abs());
        let factor = match self.class.policy() {
            Policy::Idle => VIRTUAL_PER_REAL_IDLE,
            _ => VIRTUAL_PER_REAL[index],
        };
        (nanos / 1024).saturating_mul(u64::from(factor))
    }
}
