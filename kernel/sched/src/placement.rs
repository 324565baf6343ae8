//! Which CPU a runnable thread goes to.
//!
//! The last CPU of the thread if that is idle, else any idle CPU it may use, else its
//! last one. A CPU announces in `IDLE` that it is about to halt *before* it looks at
//! its queue for the last time; a waker fills the queue *before* it looks at `IDLE`. So
//! one of the two always sees the other.
//!
//! While all CPUs are busy nobody steals and no thread that keeps running is placed anew.
//! So each CPU compares the queues once a slice ([`balance`]): who waits for a CPU with two
//! more in its queue is better off in a queue with two fewer.
//!
//! A thread with a real-time rank goes to an idle CPU, else to the one that runs the worst rank.
//! A CPU that looks for its next thread looks at the others' queues for a better one first, as
//! long as any real-time thread waits anywhere.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

use base::{CpuId, CpuSet, Duration, SharedCpuSet};
use mach::cpu::MAX_CPUS;
use mach::sync::Spin;

use crate::class::Rank;
use crate::run_queue::{Place, RunQueue};
use crate::{Entity, Flags, budget, current, timer};

static QUEUES: [Spin<RunQueue>; MAX_CPUS] = [const { Spin::new(RunQueue::new()) }; MAX_CPUS];
static IDLE: SharedCpuSet = SharedCpuSet::new(CpuSet::EMPTY);
/// The rank of what each CPU runs.
static RUNNING: [AtomicU8; MAX_CPUS] = [const { AtomicU8::new(Rank::FAIR.to_byte()) }; MAX_CPUS];
/// Threads of real-time ranks that wait for a CPU.
static REALTIME_READY: AtomicUsize = AtomicUsize::new(0);

/// How much longer a queue is from which a busy CPU takes a thread.
const IMBALANCE: usize = 2;

/// A thread that woke runs at once if it has had this much less than the running one.
const PREEMPT_LEAD_NS: u64 = 1_000_000;

pub(crate) fn queues() -> impl Iterator<Item = &'static Spin<RunQueue>> {
    QUEUES.iter().take(mach::cpu::count())
}

/// Puts a thread that is `Ready` on a queue and sees to it that a CPU notices.
pub(crate) fn enqueue(thread: Arc<Entity>) {
    thread.life.want_cpu(mach::time::now());
    queue(thread);
}

/// The same for a thread that has wanted a CPU for longer.
pub(crate) fn queue(thread: Arc<Entity>) {
    let cpu = choose(&thread);
    let first = {
        let mut queue = QUEUES[cpu.index()].lock();
        queue.push(thread, cpu);
        queue.first(false)
    };
    if cpu != mach::cpu::id() {
        mach::cpu::kick(cpu);
    } else if !is_idle(cpu) {
        preempt_current_if_behind(first);
    }
}

/// The thread has got another rank: it moves to its new place, and the CPU that runs it looks
/// whether another one is better now.
pub(crate) fn note_rank(thread: &Entity) {
    while let Some((cpu, ..)) = thread.place() {
        let found = QUEUES[cpu.index()].lock().remove(thread);
        if let Some(thread) = found {
            return enqueue(thread);
        }
        mach::cpu::relax();
    }
    let cpu = thread.last_cpu();
    if thread.is_on_cpu() {
        note_running(cpu, thread);
        match cpu == mach::cpu::id() {
            true => note_arrivals(),
            false => mach::cpu::kick(cpu),
        }
    }
}

/// `thread` runs on `cpu` from now on, or with another rank.
pub(crate) fn note_running(cpu: CpuId, thread: &Entity) {
    let rank = thread.class.rank().to_byte();
    let running = &RUNNING[cpu.index()];
    if running.load(Ordering::Relaxed) != rank {
        running.store(rank, Ordering::Relaxed);
    }
}

/// Another CPU may have put a thread on this one's queue while a program ran here: the
/// program makes way at once, or when its slice ends. A CPU that went idle meanwhile is
/// told, so that it steals.
pub(crate) fn note_arrivals() {
    let me = mach::cpu::id();
    let first = QUEUES[me.index()].lock().first(false);
    if first.is_none() {
        return;
    }
    preempt_current_if_behind(first);
    let idle = IDLE.load(Ordering::SeqCst) - CpuSet::one(me);
    if let Some(cpu) = idle.first() {
        mach::cpu::kick(cpu);
    }
}

fn preempt_current_if_behind(first: Option<Place>) {
    let me = current();
    if first.is_some_and(|first| is_behind(&me, first)) {
        me.set_flags(Flags::RESCHEDULE);
    }
    timer::arm_slice();
}

/// Whether a running thread makes way at once for the one that waits at `first`.
fn is_behind(running: &Entity, first: Place) -> bool {
    let rank = running.class.rank();
    if first.rank == Rank::FAIR && rank == Rank::FAIR {
        return first.vruntime_ns + PREEMPT_LEAD_NS < running.vruntime_ns();
    }
    first.rank < rank && (rank.is_realtime() || !budget::is_spent(mach::time::now()))
}

/// Whether the running thread has had its turn, as others wait for this CPU.
pub(crate) fn is_turn_over(running: &Entity, slice_used: Duration) -> bool {
    let first = QUEUES[mach::cpu::id().index()].lock().first(false);
    let Some(first) = first else { return false };
    if is_behind(running, first) {
        return true;
    }
    if !running.class.rank().is_realtime() {
        return slice_used >= timer::SLICE;
    }
    let now = mach::time::now();
    budget::count(now);
    running.class.is_round_over(slice_used) || budget::is_spent(now)
}

fn choose(thread: &Entity) -> CpuId {
    let last = thread.last_cpu();
    let allowed = thread.affinity() & mach::cpu::all();
    let idle = IDLE.load(Ordering::SeqCst) & allowed;
    let rank = thread.class.rank();
    if rank.is_realtime() && idle.is_empty() {
        return worst_running(allowed, last);
    }
    if allowed.contains(last) && (idle.contains(last) || idle.is_empty()) {
        return last;
    }
    idle.first().or(allowed.first()).unwrap_or(last)
}

/// The CPU of `allowed` that runs the worst rank, `last` among equals.
fn worst_running(allowed: CpuSet, last: CpuId) -> CpuId {
    let by_rank = |cpu: &CpuId| {
        let rank = RUNNING[cpu.index()].load(Ordering::Relaxed);
        (rank, *cpu == last)
    };
    allowed.iter().max_by_key(by_rank).unwrap_or(last)
}

fn is_idle(cpu: CpuId) -> bool {
    IDLE.contains(cpu, Ordering::SeqCst)
}

/// CPUs that are not idle.
pub(crate) fn busy_count() -> usize {
    (mach::cpu::all() - IDLE.load(Ordering::SeqCst)).len()
}

pub(crate) fn announce_idle(cpu: CpuId) {
    IDLE.insert(cpu, Ordering::SeqCst);
}

pub(crate) fn announce_busy(cpu: CpuId) {
    IDLE.remove(cpu, Ordering::SeqCst);
}

/// Whether a thread waits for this CPU.
pub(crate) fn has_ready(cpu: CpuId) -> bool {
    QUEUES[cpu.index()].lock().len() != 0
}

/// The next thread for this CPU: its own, else one of a busy neighbour's. A better one of a
/// neighbour's goes first.
pub(crate) fn next(cpu: CpuId) -> Option<Arc<Entity>> {
    if REALTIME_READY.load(Ordering::Relaxed) != 0 {
        return next_by_rank(cpu);
    }
    let own = QUEUES[cpu.index()].lock().pop(false);
    own.or_else(|| steal(cpu))
}

#[cold]
fn next_by_rank(cpu: CpuId) -> Option<Arc<Entity>> {
    let is_spent = budget::is_spent(mach::time::now());
    let own = QUEUES[cpu.index()].lock().first(is_spent);
    let than = own.map_or(Rank::FAIR, |place| place.rank);
    let better = || {
        let mut others = (0..mach::cpu::count()).filter(|other| *other != cpu.index());
        others.find_map(|other| QUEUES[other].lock().steal_better(cpu, than))
    };
    let better = if is_spent { None } else { better() };
    let own = || QUEUES[cpu.index()].lock().pop(is_spent);
    better.or_else(own).or_else(|| steal(cpu))
}

/// The thread to which `running` makes way on this CPU, if there is one: for a real-time thread
/// only another of a rank as good, unless such threads have had their part.
pub(crate) fn next_instead_of(running: &Entity, cpu: CpuId) -> Option<Arc<Entity>> {
    let rank = running.class.rank();
    if rank.is_realtime() && !budget::is_spent(mach::time::now()) {
        let mut queue = QUEUES[cpu.index()].lock();
        let first = queue.first(false).filter(|first| first.rank <= rank);
        return first.and_then(|_| queue.pop(false));
    }
    next(cpu)
}

/// Counts real-time threads that wait, as they come and go.
pub(crate) fn count_realtime(waits: bool) {
    match waits {
        true => REALTIME_READY.fetch_add(1, Ordering::Relaxed),
        false => REALTIME_READY.fetch_sub(1, Ordering::Relaxed),
    };
}

/// Takes a thread over from the CPU with the longest queue, if it is by [`IMBALANCE`] longer
/// than this one's. By one would only move the wait.
pub(crate) fn balance() {
    let me = mach::cpu::id();
    let own = QUEUES[me.index()].lock().len();
    let waiting = |cpu: &usize| QUEUES[*cpu].lock().len();
    let longest = (0..mach::cpu::count())
        .map(|cpu| (waiting(&cpu), cpu))
        .max();
    let Some((_, longest)) = longest.filter(|(len, _)| *len >= own + IMBALANCE) else {
        return;
    };
    let taken = QUEUES[longest].lock().steal(me);
    if let Some(thread) = taken {
        QUEUES[me.index()].lock().push(thread, me);
    }
}

fn steal(thief: CpuId) -> Option<Arc<Entity>> {
    let count = mach::cpu::count();
    (1..count).find_map(|step| {
        let victim = (thief.index() + step) % count;
        QUEUES[victim].lock().steal(thief)
    })
}
