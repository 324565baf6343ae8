//! How long a real-time thread may run without waiting (RLIMIT_RTTIME).
//!
//! A real-time thread that never waits may be in an endless loop, and keeps others from its
//! CPU. So what it uses since its last wait is counted (`sched`), and its process is told by
//! SIGXCPU at the soft limit and each second after it, and killed at the hard one.
//!
//! Signals are not sent where samples are taken, which may be in the midst of a switch, but from
//! the softirq of timers.

use cred::{Limit, Resource, UNLIMITED};

use super::Thread;
use crate::signal::{Info, Signal, send_to_process};

const SECOND_US: u64 = 1_000_000;

/// Tells or ends the process of the running thread, which is real-time, if that has run for too
/// long.
pub(super) fn enforce(me: &Thread) {
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
