//! How long a real-time thread may run without waiting (RLIMIT_RTTIME).
//!
//! A real-time thread that never waits may be in an endless loop, and keeps others from its
//! CPU. So what it uses since its last wait is counted, and its process is told by SIGXCPU
//! at the soft limit and each second after it, and killed at the hard one.
//!
//! Time is counted in samples ([`super::sample`]), as Linux counts it in ticks: only while the
//! policy is real-time, and neither preemption nor sched_yield(2) begin it anew. Signals
//! are not sent where samples are taken, which may be in the midst of a switch, but from the
//! softirq of timers.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::signal::{Info, Signal, send_to_process};
use crate::task::{Limit, Resource, Thread, UNLIMITED};

const SECOND_US: u64 = 1_000_000;

/// What a thread has used under a real-time policy since it waited last.
#[derive(Default)]
pub(super) struct SinceWait(AtomicU64);

impl SinceWait {
    pub(super) fn count(&self, used_ns: u64) {
        self.0.fetch_add(used_ns, Ordering::Relaxed);
    }

    /// It waits.
    pub(super) fn reset(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    fn micros(&self) -> u64 {
        self.0.load(Ordering::Relaxed) / 1000
    }
}

/// Tells or ends the process of the running thread if that has run for too long.
pub(super) fn enforce(me: &Thread) {
    if !me.sched.class.policy().is_realtime() {
        return;
    }
    let limits = &me.process.limits;
    let Limit { soft, hard } = limits.get(Resource::RealtimeMicros);
    let used_us = me.sched.since_wait.micros();
    let signal = match () {
        () if hard != UNLIMITED && used_us >= hard => Signal::KILL,
        () if soft != UNLIMITED && used_us >= soft => Signal::XCPU,
        () => return,
    };
    if signal == Signal::XCPU {
        let soft = soft.saturating_add(SECOND_US);
        limits.set(Resource::RealtimeMicros, Limit { soft, hard });
    }
    // A standard signal always fits.
    let _ = send_to_process(&me.process, Info::kernel(signal));
}
