//! The timers of a process: three interval timers, and POSIX timers by number.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;

use cred::{Account, Charge, Counted, Resource, UNLIMITED};
use mach::sync::Spin;
use sync::{Error, Result};

use super::{Base, SignalTimer, Target};
use crate::processes::Process;
use crate::signal::Signal;

/// POSIX timers that a process may have.
const POSIX_TIMERS_MAX: usize = 1024;
const SECOND_NS: u64 = 1_000_000_000;

/// The interval timers of setitimer(2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Interval {
    /// Real time; SIGALRM.
    Real,
    /// CPU time of the program; SIGVTALRM.
    Virtual,
    /// CPU time of program and kernel; SIGPROF.
    Profile,
}

impl Interval {
    fn base_and_signal(self) -> (Base, Signal) {
        match self {
            Self::Real => (Base::Monotonic, Signal::ALRM),
            Self::Virtual => (Base::ProcessUser, Signal::VTALRM),
            Self::Profile => (Base::ProcessCpu, Signal::PROF),
        }
    }
}

#[derive(Default)]
struct Inner {
    intervals: [Option<Arc<SignalTimer>>; 3],
    /// What watches RLIMIT_CPU: its soft and its hard limit.
    cpu_limit: [Option<Arc<SignalTimer>>; 2],
    /// Each has paid for a signal of its own.
    posix: BTreeMap<u32, (Arc<SignalTimer>, Charge)>,
    last_id: u32,
}

/// All timers of a process. They are not inherited.
#[derive(Default)]
pub struct ProcessTimers(Spin<Inner>);

impl ProcessTimers {
    /// The interval timer, made when it is first used.
    pub fn interval(&self, process: &Arc<Process>, which: Interval) -> Arc<SignalTimer> {
        let mut inner = self.0.lock();
        let slot = &mut inner.intervals[which as usize];
        slot.get_or_insert_with(|| {
            let (base, signal) = which.base_and_signal();
            let target = Target {
                signal: Some(signal),
                thread: None,
                posix: None,
            };
            SignalTimer::new(process, base, false, target)
        })
        .clone()
    }

    /// Watches the process' RLIMIT_CPU as it is now: SIGXCPU at the soft limit and every
    /// second after it, SIGKILL at the hard one.
    pub fn limit_cpu(&self, process: &Arc<Process>) {
        let limit = process.limits.get(Resource::CpuSeconds);
        let watched = [
            (limit.soft, Signal::XCPU, SECOND_NS),
            (limit.hard, Signal::KILL, 0),
        ];
        for (index, (seconds, signal, again_ns)) in watched.into_iter().enumerate() {
            let timer = self.0.lock().cpu_limit[index].clone();
            let timer = match (timer, seconds) {
                (None, UNLIMITED) => continue,
                (Some(timer), _) => timer,
                (None, _) => self.watch_cpu(process, index, signal),
            };
            let expires_ns = match seconds {
                UNLIMITED => 0,
                seconds => seconds.max(1).saturating_mul(SECOND_NS),
            };
            timer.set(expires_ns, again_ns, true);
        }
    }

    fn watch_cpu(&self, process: &Arc<Process>, index: usize, signal: Signal) -> Arc<SignalTimer> {
        let target = Target {
            signal: Some(signal),
            thread: None,
            posix: None,
        };
        let timer = SignalTimer::new(process, Base::ProcessCpu, false, target);
        self.0.lock().cpu_limit[index] = Some(timer.clone());
        timer
    }

    /// Makes a POSIX timer; `target` tells the signal for the timer's number.
    ///
    /// Errors: `WouldBlock` if the process, or its user, has too many.
    pub fn create(
        &self,
        process: &Arc<Process>,
        base: Base,
        is_wall: bool,
        target: impl FnOnce(u32) -> Target,
    ) -> Result<u32> {
        let mut inner = self.0.lock();
        if inner.posix.len() >= POSIX_TIMERS_MAX {
            return Err(Error::WouldBlock);
        }
        let uid = cred::credentials().with(|who| who.user.real);
        let limit = process.limits.soft(Resource::PendingSignals);
        let charge = Account::of(uid)?.charge(Counted::Signals, limit);
        let charge = charge.map_err(|_| Error::WouldBlock)?;
        let id = inner.last_id;
        inner.last_id = inner.last_id.wrapping_add(1) & i32::MAX as u32;
        let timer = SignalTimer::new(process, base, is_wall, target(id));
        inner.posix.insert(id, (timer, charge));
        Ok(id)
    }

    /// The POSIX timer of that number.
    pub fn get(&self, id: u32) -> Result<Arc<SignalTimer>> {
        let inner = self.0.lock();
        let (timer, _) = inner.posix.get(&id).ok_or(Error::Invalid)?;
        Ok(timer.clone())
    }

    /// Removes a POSIX timer.
    pub fn delete(&self, id: u32) -> Result<()> {
        let (timer, _charge) = self.0.lock().posix.remove(&id).ok_or(Error::Invalid)?;
        timer.set(0, 0, false);
        Ok(())
    }

    /// A timer's signal was delivered.
    pub(crate) fn note_delivery(&self, id: u32, overrun: u32) {
        if let Ok(timer) = self.get(id) {
            timer.set_overrun(overrun);
        }
    }

    /// Removes the POSIX timers (execve).
    pub fn stop_posix(&self) {
        let timers = core::mem::take(&mut self.0.lock().posix);
        for (timer, _charge) in timers.into_values() {
            timer.set(0, 0, false);
        }
    }

    /// Removes all timers (the process ends).
    pub fn stop_all(&self) {
        self.stop_posix();
        let (intervals, limits) = {
            let mut inner = self.0.lock();
            let inner = &mut *inner;
            let intervals = core::mem::take(&mut inner.intervals);
            (intervals, core::mem::take(&mut inner.cpu_limit))
        };
        for timer in intervals.into_iter().chain(limits).flatten() {
            timer.set(0, 0, false);
        }
    }
}
