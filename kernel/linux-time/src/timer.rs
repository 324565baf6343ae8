//! Timers that send signals: alarm, setitimer, POSIX timers.

use alloc::sync::Arc;

use base::Duration;
use linux_raw_sys::general::{
    __NR_alarm, __NR_getitimer, __NR_setitimer, __NR_timer_create, __NR_timer_delete,
    __NR_timer_getoverrun, __NR_timer_gettime, __NR_timer_settime, ITIMER_PROF, ITIMER_REAL,
    ITIMER_VIRTUAL, SIGEV_NONE, SIGEV_SIGNAL, SIGEV_THREAD_ID, TIMER_ABSTIME,
};
use mm::user;
use sync::{Error, Result};
use task::signal::Signal;
use task::timers::{Base, Interval, SignalTimer, Target};

use crate::time::{Clock, check_waits};
use linux_abi::call::{Arg, Call, Entry, Outcome};
use linux_abi::errno::Errno;
use linux_abi::timespec;

/// The calls of this family.
pub const CALLS: &[Entry] = &[
    Entry {
        number: __NR_alarm,
        name: "alarm",
        args: &[Arg::Int],
        handler: alarm,
    },
    Entry {
        number: __NR_getitimer,
        name: "getitimer",
        args: &[Arg::Int, Arg::Address],
        handler: getitimer,
    },
    Entry {
        number: __NR_setitimer,
        name: "setitimer",
        args: &[Arg::Int, Arg::Address, Arg::Address],
        handler: setitimer,
    },
    Entry {
        number: __NR_timer_create,
        name: "timer_create",
        args: &[Arg::Int, Arg::Address, Arg::Address],
        handler: timer_create,
    },
    Entry {
        number: __NR_timer_settime,
        name: "timer_settime",
        args: &[Arg::Int, Arg::Flags, Arg::Address, Arg::Address],
        handler: timer_settime,
    },
    Entry {
        number: __NR_timer_gettime,
        name: "timer_gettime",
        args: &[Arg::Int, Arg::Address],
        handler: timer_gettime,
    },
    Entry {
        number: __NR_timer_getoverrun,
        name: "timer_getoverrun",
        args: &[Arg::Int],
        handler: timer_getoverrun,
    },
    Entry {
        number: __NR_timer_delete,
        name: "timer_delete",
        args: &[Arg::Int],
        handler: timer_delete,
    },
];

fn interval(call: &Call<'_>, which: u32) -> core::result::Result<Arc<SignalTimer>, Errno> {
    let which = match which {
        ITIMER_REAL => Interval::Real,
        ITIMER_VIRTUAL => Interval::Virtual,
        ITIMER_PROF => Interval::Profile,
        _ => return Err(Errno::EINVAL),
    };
    Ok(call
        .thread
        .process
        .timers
        .interval(&call.thread.process, which))
}

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// The rest of the former alarm is told in whole seconds, rounded, but never as none.
fn alarm(call: Call<'_>) -> Outcome {
    let timer = interval(&call, ITIMER_REAL)?;
    let (left_ns, _) = timer.set(u64::from(call.uint(0)) * NANOS_PER_SECOND, 0, false);
    let seconds = (left_ns + NANOS_PER_SECOND / 2) / NANOS_PER_SECOND;
    Ok(if left_ns == 0 {
        0
    } else {
        seconds.max(1) as usize
    })
}

/// `struct itimerval`: interval, then value.
fn itimerval((left_ns, interval_ns): (u64, u64)) -> [[i64; 2]; 2] {
    // Less than a microsecond is left, but not nothing.
    let left_ns = if left_ns == 0 { 0 } else { left_ns.max(1000) };
    [interval_ns, left_ns].map(|nanos| timespec::words_micros(Duration::from_nanos(nanos)))
}

fn getitimer(call: Call<'_>) -> Outcome {
    let timer = interval(&call, call.uint(0))?;
    user::write(call.addr(1), itimerval(timer.get()))?;
    Ok(0)
}

fn setitimer(call: Call<'_>) -> Outcome {
    let timer = interval(&call, call.uint(0))?;
    let (value, interval) = match call.optional_addr(1) {
        Some(at) => (timespec::read_micros(at + 16)?, timespec::read_micros(at)?),
        None => (Duration::ZERO, Duration::ZERO),
    };
    let old = timer.set(timespec::nanos(value), timespec::nanos(interval), false);
    if let Some(at) = call.optional_addr(2) {
        user::write(at, itimerval(old))?;
    }
    Ok(0)
}

fn timer_create(call: Call<'_>) -> Outcome {
    let clock = Clock::from_number(call.int(0))?;
    check_waits(call.int(0))?;
    let base = match clock {
        Clock::Wall | Clock::Monotonic => Base::Monotonic,
        Clock::ProcessCpu(0) => Base::ProcessCpu,
        Clock::ThreadCpu(0) => Base::ThreadCpu(call.thread.id()),
        _ => return Err(Errno::EINVAL),
    };
    let event = match call.optional_addr(1) {
        Some(at) => SigEvent::parse(user::read(at)?, &call)?,
        None => SigEvent {
            signal: Some(Signal::ALRM),
            thread: None,
            value: None,
        },
    };
    let process = &call.thread.process;
    let id = process
        .timers
        .create(process, base, event.wall(&call)?, |id| Target {
            signal: event.signal,
            thread: event.thread,
            posix: Some((id, event.value.unwrap_or(u64::from(id)))),
        });
    let id = id.map_err(|error| match error {
        Error::WouldBlock => Errno::EAGAIN,
        other => other.into(),
    })?;
    if let Err(error) = user::write(call.addr(2), id) {
        process.timers.delete(id)?;
        return Err(error.into());
    }
    Ok(0)
}

/// What a `struct sigevent` asks for.
#[derive(Clone, Copy)]
struct SigEvent {
    signal: Option<Signal>,
    thread: Option<u32>,
    /// `None`: the timer's number.
    value: Option<u64>,
}

impl SigEvent {
    /// The first words of the structure: value, signal and kind, thread.
    fn parse(
        [value, kind, thread]: [u64; 3],
        call: &Call<'_>,
    ) -> core::result::Result<Self, Errno> {
        let signal = Signal::new(kind as u32);
        let (signal, thread) = match (kind >> 32) as u32 {
            SIGEV_NONE => (None, None),
            SIGEV_SIGNAL => (Some(signal.ok_or(Errno::EINVAL)?), None),
            SIGEV_THREAD_ID => {
                let thread = task::find_thread(thread as u32).ok_or(Errno::EINVAL)?;
                if !Arc::ptr_eq(&thread.process, &call.thread.process) {
                    return Err(Errno::EINVAL);
                }
                (Some(signal.ok_or(Errno::EINVAL)?), Some(thread.id()))
            }
            _ => return Err(Errno::EINVAL),
        };
        Ok(Self {
            signal,
            thread,
            value: Some(value),
        })
    }

    /// Whether absolute values are those of the wall clock.
    fn wall(&self, call: &Call<'_>) -> core::result::Result<bool, Errno> {
        Ok(Clock::from_number(call.int(0))? == Clock::Wall)
    }
}

fn posix_timer(call: &Call<'_>) -> Result<Arc<SignalTimer>> {
    let id = u32::try_from(call.int(0)).map_err(|_| Error::Invalid)?;
    call.thread.process.timers.get(id)
}

/// `struct itimerspec`: interval, then value.
fn itimerspec((left_ns, interval_ns): (u64, u64)) -> [[i64; 2]; 2] {
    [interval_ns, left_ns].map(|nanos| timespec::words(Duration::from_nanos(nanos)))
}

fn timer_settime(call: Call<'_>) -> Outcome {
    let timer = posix_timer(&call)?;
    if call.uint(1) & !TIMER_ABSTIME != 0 {
        return Err(Errno::EINVAL);
    }
    let absolute = call.uint(1) & TIMER_ABSTIME != 0;
    let interval = timespec::read(call.addr(2))?;
    let mut value = timespec::read(call.addr(2) + 16)?;
    if absolute && timer.is_wall && !value.is_zero() {
        // A moment that has passed expires at once.
        let instant = clock::instant_of_wall(value);
        value = Duration::from_nanos(instant.as_nanos().max(1));
    }
    let old = timer.set(timespec::nanos(value), timespec::nanos(interval), absolute);
    if let Some(at) = call.optional_addr(3) {
        user::write(at, itimerspec(old))?;
    }
    Ok(0)
}

fn timer_gettime(call: Call<'_>) -> Outcome {
    let timer = posix_timer(&call)?;
    user::write(call.addr(1), itimerspec(timer.get()))?;
    Ok(0)
}

fn timer_getoverrun(call: Call<'_>) -> Outcome {
    Ok(posix_timer(&call)?.overrun() as usize)
}

fn timer_delete(call: Call<'_>) -> Outcome {
    let id = u32::try_from(call.int(0)).map_err(|_| Errno::EINVAL)?;
    call.thread.process.timers.delete(id)?;
    Ok(0)
}
