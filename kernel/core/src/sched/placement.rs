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

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering};

use base::CpuId;
use mach::cpu::MAX_CPUS;
use mach::sync::Spin;

use super::run_queue::RunQueue;
use super::timer;
use crate::task::{Flags, Thread, current};

static QUEUES: [Spin<RunQueue>; MAX_CPUS] = [const { Spin::new(RunQueue::new()) }; MAX_CPUS];
static IDLE: AtomicU64 = AtomicU64::new(0);

/// How much longer a queue is from which a busy CPU takes a thread.
const IMBALANCE: usize = 2;

/// A thread that woke runs at once if it has had this much less than the running one.
const PREEMPT_LEAD_NS: u64 = 1_000_000;

pub(super) fn queues() -> impl Iterator<Item = &'static Spin<RunQueue>> {
    QUEUES.iter().take(mach::cpu::count())
}

/// Puts a thread that is `Ready` on a queue and sees to it that a CPU notices.
pub(super) fn enqueue(thread: Arc<Thread>) {
    thread.sched.life.want_cpu(mach::time::now());
    let cpu = choose(&thread);
    let vruntime_ns = {
        let mut queue = QUEUES[cpu.index()].lock();
        queue.push(thread);
        queue.first_vruntime_ns().unwrap_or(0)
    };
    if cpu != mach::cpu::id() {
        mach::cpu::kick(cpu);
    } else if !is_idle(cpu) {
        preempt_current_if_behind(vruntime_ns);
    }
}

/// Another CPU may have put a thread on this one's queue while a program ran here: the
/// program makes way at once, or when its slice ends. A CPU that went idle meanwhile is
/// told, so that it steals.
pub(super) fn note_arrivals() {
    let me = mach::cpu::id();
    let first = QUEUES[me.index()].lock().first_vruntime_ns();
    let Some(vruntime_ns) = first else { return };
    preempt_current_if_behind(vruntime_ns);
    let idle = IDLE.load(Ordering::SeqCst) & !(1 << me.0);
    if idle != 0 {
        mach::cpu::kick(CpuId(idle.trailing_zeros()));
    }
}

fn preempt_current_if_behind(vruntime_ns: u64) {
    let me = current();
    if vruntime_ns + PREEMPT_LEAD_NS < me.sched.vruntime_ns() {
        me.set_flags(Flags::RESCHEDULE);
    }
    timer::arm_slice();
}

fn choose(thread: &Thread) -> CpuId {
    let last = thread.sched.last_cpu();
    let allowed = thread.sched.affinity() & started_mask();
    if allowed >> last.0 & 1 != 0 && (is_idle(last) || IDLE.load(Ordering::SeqCst) & allowed == 0) {
        return last;
    }
    match IDLE.load(Ordering::SeqCst) & allowed {
        0 => CpuId(allowed.trailing_zeros().min(MAX_CPUS as u32 - 1)),
        idle => CpuId(idle.trailing_zeros()),
    }
}

fn started_mask() -> u64 {
    (1 << mach::cpu::count()) - 1
}

fn is_idle(cpu: CpuId) -> bool {
    IDLE.load(Ordering::SeqCst) >> cpu.0 & 1 != 0
}

/// CPUs that are not idle.
pub(super) fn busy_count() -> usize {
    let idle = IDLE.load(Ordering::SeqCst) & started_mask();
    mach::cpu::count() - idle.count_ones() as usize
}

pub(super) fn announce_idle(cpu: CpuId) {
    IDLE.fetch_or(1 << cpu.0, Ordering::SeqCst);
}

pub(super) fn announce_busy(cpu: CpuId) {
    IDLE.fetch_and(!(1 << cpu.0), Ordering::SeqCst);
}

/// Whether a thread waits for this CPU.
pub(super) fn has_ready(cpu: CpuId) -> bool {
    QUEUES[cpu.index()].lock().len() != 0
}

/// The next thread for `cpu`: its own, else one of a busy neighbour's.
pub(super) fn next(cpu: CpuId) -> Option<Arc<Thread>> {
    let own = QUEUES[cpu.index()].lock().pop();
    own.or_else(|| steal(cpu))
}

/// Takes a thread over from the CPU with the longest queue, if it is by [`IMBALANCE`] longer
/// than this one's. By one would only move the wait.
pub(super) fn balance() {
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
        QUEUES[me.index()].lock().push(thread);
    }
}

fn steal(thief: CpuId) -> Option<Arc<Thread>> {
    let count = mach::cpu::count();
    (1..count).find_map(|step| {
        let victim = (thief.index() + step) % count;
        QUEUES[victim].lock().steal(thief)
    })
}
