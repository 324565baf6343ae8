//! One timer that sends a signal when its clock reaches a value, perhaps again and again.
//!
//! A timer of a CPU-time clock is armed for the moment at which the clock *could* reach
//! the value if the program ran all the time, and armed again if it has not.
//!
//! Lock order: a timer's state, then the deadlines of a CPU or the signal queues.

use alloc::sync::{Arc, Weak};

use base::{Duration, Instant};
use mach::sync::Spin;
use sched::sample;
use sched::timer::{self, Expire, TimerId};

use crate::processes::{Process, Tid, find_thread};
use crate::signal::{Info, Origin, Signal, code, send_to_process, send_to_thread};

/// A timer does not fire more often than this, however short its interval.
const REARM_MIN: Duration = Duration::from_micros(50);

/// The clock of a timer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Base {
    /// The machine's.
    Monotonic,
    /// CPU time of the process.
    ProcessCpu,
    /// The part of it that is the program's own.
    ProcessUser,
    /// CPU time of one of its threads.
    ThreadCpu(Tid),
}

/// Whom a timer tells, and how.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// The signal; `None` to tell nobody.
    pub signal: Option<Signal>,
    /// The thread that gets it; `None` for any.
    pub thread: Option<Tid>,
    /// The number of the POSIX timer and its value; `None` for an interval timer.
    pub posix: Option<(u32, u64)>,
}

#[derive(Default)]
struct State {
    /// Clock value of the next expiration; 0 while disarmed.
    expires_ns: u64,
    interval_ns: u64,
    armed: Option<TimerId>,
    overrun: u32,
}

/// A timer of a process.
pub struct SignalTimer {
    /// Its clock.
    pub base: Base,
    /// Whether the program gives absolute values by the wall clock.
    pub is_wall: bool,
    process: Weak<Process>,
    target: Target,
    state: Spin<State>,
}

impl SignalTimer {
    /// A disarmed timer.
    pub fn new(process: &Arc<Process>, base: Base, is_wall: bool, target: Target) -> Arc<Self> {
        let process = Arc::downgrade(process);
        Arc::new(Self {
            base,
            is_wall,
            process,
            target,
            state: Spin::default(),
        })
    }

    fn now_ns(&self) -> u64 {
        match self.base {
            Base::Monotonic => mach::time::now().as_nanos(),
            Base::ProcessCpu => self.process.upgrade().map_or(0, |process| process.cpu_ns()),
            Base::ProcessUser => self
                .process
                .upgrade()
                .map_or(0, |process| process.cpu_time().user_ns),
            Base::ThreadCpu(id) => find_thread(id).map_or(0, |thread| thread.cpu_ns()),
        }
    }

    /// How long it waits at least when its clock has not come far enough. Samples say how far
    /// the program's part has come, so there is no use in looking more often.
    fn pause(&self) -> Duration {
        match self.base {
            Base::ProcessUser => sample::period(),
            _ => REARM_MIN,
        }
    }

    /// What is left until the next expiration (0 if disarmed), and the interval, in
    /// nanoseconds.
    pub fn get(&self) -> (u64, u64) {
        let state = self.state.lock();
        let left = match state.expires_ns {
            0 => 0,
            expires_ns => expires_ns.saturating_sub(self.now_ns()).max(1),
        };
        (left, state.interval_ns)
    }

    /// Arms it for `value_ns` from now (or for that value of its clock if `absolute`), then
    /// every `interval_ns`; disarms it if `value_ns` is 0. Gives back what [`Self::get`]
    /// would have.
    pub fn set(self: &Arc<Self>, value_ns: u64, interval_ns: u64, absolute: bool) -> (u64, u64) {
        let before = self.get();
        let now_ns = self.now_ns();
        let mut state = self.state.lock();
        state.expires_ns = match (value_ns, absolute) {
            (0, _) => 0,
            (value_ns, true) => value_ns,
            (value_ns, false) => now_ns.saturating_add(value_ns),
        };
        state.interval_ns = interval_ns;
        state.overrun = 0;
        self.arm(&mut state, now_ns);
        before
    }

    /// Expirations that the last delivered signal stood for, beyond the first.
    pub fn overrun(&self) -> u32 {
        self.state.lock().overrun
    }

    pub(super) fn set_overrun(&self, overrun: u32) {
        self.state.lock().overrun = overrun;
    }

    fn arm(self: &Arc<Self>, state: &mut State, now_ns: u64) {
        if let Some(old) = state.armed.take() {
            timer::cancel(old);
        }
        if state.expires_ns != 0 {
            let left = Duration::from_nanos(state.expires_ns.saturating_sub(now_ns));
            let deadline = mach::time::now() + left;
            state.armed = Some(timer::add(deadline, timer::Target::Call(self.clone())));
        }
    }

    fn fire(&self, missed: u64) {
        let (Some(signal), Some(process)) = (self.target.signal, self.process.upgrade()) else {
            return;
        };
        let Some((id, value)) = self.target.posix else {
            // A standard signal always fits.
            let _ = send_to_process(&process, Info::kernel(signal));
            return;
        };
        let overrun = u32::try_from(missed).unwrap_or(u32::MAX);
        if process.signals.add_overrun(id) {
            return;
        }
        let info = Info {
            signal,
            code: code::TIMER,
            origin: Origin::Timer { id, overrun, value },
        };
        // A full queue loses expirations; timer_getoverrun(2) then tells too few.
        let _ = match self.target.thread {
            None => send_to_process(&process, info),
            Some(id) => find_thread(id).map_or(Ok(()), |thread| send_to_thread(&thread, info)),
        };
    }
}

impl Expire for SignalTimer {
    fn expire(self: Arc<Self>, _now: Instant) {
        let now_ns = self.now_ns();
        let mut state = self.state.lock();
        if state.expires_ns == 0 {
            return;
        }
        if now_ns < state.expires_ns {
            let pause_ns = self.pause().as_nanos();
            let target_ns = state.expires_ns;
            state.expires_ns = target_ns.max(now_ns + pause_ns);
            self.arm(&mut state, now_ns);
            state.expires_ns = target_ns;
            return;
        }
        let missed = match state.interval_ns {
            0 => {
                state.expires_ns = 0;
                state.armed = None;
                0
            }
            interval_ns => {
                let missed = (now_ns - state.expires_ns) / interval_ns;
                let step_ns = interval_ns.saturating_mul(missed + 1);
                let least_ns = now_ns + REARM_MIN.as_nanos();
                state.expires_ns = state.expires_ns.saturating_add(step_ns).max(least_ns);
                self.arm(&mut state, now_ns);
                missed
            }
        };
        drop(state);
        self.fire(missed);
    }
}
