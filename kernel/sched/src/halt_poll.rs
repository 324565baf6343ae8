//! Looks for work for a moment before the CPU halts (`cpuidle`).
//!
//! A poll lasts as long as a halt costs under KVM: the exit, the interrupt that ends it, and
//! what acknowledges that. Elsewhere a CPU halts at once. Interrupts stay closed and doorbells
//! silent meanwhile, so that what is found costs no interrupt either.

use core::cell::Cell;
use core::sync::atomic::{AtomicU64, Ordering};

use base::{CpuId, Duration, Instant};
use cpuidle::HaltPoll;
use mach::cpu::PerCpu;

use crate::entity::Leave;
use crate::{current, dispatcher, preempt_off, sample, softirq};

/// A halt costs about as much as so many exits.
const EXITS_PER_HALT: u64 = 3;

/// Each CPU's own.
static POLLS: PerCpu<Cell<HaltPoll>> = PerCpu::new(|| Cell::new(HaltPoll::new()));
/// The administrator's, for all CPUs.
static LIMIT_NS: AtomicU64 = AtomicU64::new(0);

/// Chooses how long polls last; once at boot.
pub(crate) fn init() {
    let limit_ns = mach::time::exit_cost().as_nanos() * EXITS_PER_HALT;
    LIMIT_NS.store(limit_ns, Ordering::Relaxed);
}

/// How long a poll lasts; zero where none pays.
fn limit() -> Duration {
    Duration::from_nanos(LIMIT_NS.load(Ordering::Relaxed))
}

fn with_own<R>(act: impl FnOnce(&mut HaltPoll) -> R) -> R {
    let cell = POLLS.get();
    let mut poll = cell.get();
    let done = act(&mut poll);
    cell.set(poll);
    done
}

/// Whether this CPU finds work by polling, so that interrupts would only disturb.
pub fn pays() -> bool {
    limit() != Duration::ZERO && with_own(|poll| poll.pays())
}

/// Polls, if that is likely to pay: true if there is work, or it is `deadline`. It is time in which the CPU idles.
pub(crate) fn finds_work(cpu: CpuId, deadline: Instant) -> bool {
    if limit() == Duration::ZERO || !with_own(HaltPoll::is_due) {
        return false;
    }
    let start = mach::time::now();
    current().end_slice(start, Leave::ToWait);
    sample::begin_idle(start);
    preempt_off::end();
    let found = poll_until(cpu, deadline.min(start + limit()));
    preempt_off::resume();
    let now = mach::time::now();
    sample::end_idle(now);
    current().life.run(now);
    let is_over = now >= deadline;
    if found || !is_over {
        with_own(|poll| poll.note_poll(found));
    }
    found || is_over
}

fn poll_until(cpu: CpuId, end: Instant) -> bool {
    loop {
        if softirq::poll() || dispatcher::has_ready(cpu) || current().state.is_awakened() {
            return true;
        }
        if mach::time::now() >= end {
            return false;
        }
        mach::cpu::relax();
    }
}

/// The CPU has halted for so long.
pub(crate) fn note_halt(length: Duration) {
    with_own(|poll| poll.note_halt(length, limit()));
}
