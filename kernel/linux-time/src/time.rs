//! Clocks and sleeping.

use base::{Duration, Instant};
use cred::Capability;
use linux_raw_sys::general::{
    __NR_clock_getres, __NR_clock_gettime, __NR_clock_nanosleep, __NR_clock_settime,
    __NR_gettimeofday, __NR_nanosleep, __NR_settimeofday, __NR_time, CLOCK_BOOTTIME,
    CLOCK_BOOTTIME_ALARM, CLOCK_MONOTONIC, CLOCK_MONOTONIC_COARSE, CLOCK_MONOTONIC_RAW,
    CLOCK_PROCESS_CPUTIME_ID, CLOCK_REALTIME, CLOCK_REALTIME_ALARM, CLOCK_REALTIME_COARSE,
    CLOCK_TAI, CLOCK_THREAD_CPUTIME_ID, TIMER_ABSTIME,
};
use mm::user;
use sync::{Error, Restart};

use linux_abi::call::{Arg, Call, Entry, Outcome};
use linux_abi::errno::Errno;
use linux_abi::timespec;

/// The calls of this family.
pub const CALLS: &[Entry] = &[
    Entry {
        number: __NR_clock_gettime,
        name: "clock_gettime",
        args: &[Arg::Int, Arg::Address],
        handler: clock_gettime,
    },
    Entry {
        number: __NR_clock_getres,
        name: "clock_getres",
        args: &[Arg::Int, Arg::Address],
        handler: clock_getres,
    },
    Entry {
        number: __NR_clock_settime,
        name: "clock_settime",
        args: &[Arg::Int, Arg::Address],
        handler: clock_settime,
    },
    Entry {
        number: __NR_gettimeofday,
        name: "gettimeofday",
        args: &[Arg::Address, Arg::Address],
        handler: gettimeofday,
    },
    Entry {
        number: __NR_settimeofday,
        name: "settimeofday",
        args: &[Arg::Address, Arg::Address],
        handler: settimeofday,
    },
    Entry {
        number: __NR_time,
        name: "time",
        args: &[Arg::Address],
        handler: time,
    },
    Entry {
        number: __NR_nanosleep,
        name: "nanosleep",
        args: &[Arg::Address, Arg::Address],
        handler: nanosleep,
    },
    Entry {
        number: __NR_clock_nanosleep,
        name: "clock_nanosleep",
        args: &[Arg::Int, Arg::Flags, Arg::Address, Arg::Address],
        handler: clock_nanosleep,
    },
];

/// Bits of a clock's number that name a thread's or process' CPU time: ~id << 3 | kind.
const CPU_KIND: i32 = 7;
const CPU_SCHED: i32 = 2;
const CPU_THREAD: i32 = 4;

/// How often a clock of CPU time that stands still is looked at.
const CPU_TIME_PAUSE: Duration = Duration::from_millis(1);

/// A clock that a program can read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Clock {
    /// Time since 1970.
    Wall,
    /// Time since the machine started.
    Monotonic,
    /// The same by the speed measured at boot.
    Raw,
    /// CPU time of a process; 0 for the caller's.
    ProcessCpu(u32),
    /// CPU time of a thread; 0 for the caller.
    ThreadCpu(u32),
}

impl Clock {
    /// The clock of Linux's number.
    pub fn from_number(number: i32) -> Result<Self, Errno> {
        match u32::try_from(number) {
            Ok(CLOCK_REALTIME | CLOCK_REALTIME_COARSE | CLOCK_REALTIME_ALARM | CLOCK_TAI) => {
                Ok(Self::Wall)
            }
            Ok(
                CLOCK_MONOTONIC | CLOCK_MONOTONIC_COARSE | CLOCK_BOOTTIME | CLOCK_BOOTTIME_ALARM,
            ) => Ok(Self::Monotonic),
            Ok(CLOCK_MONOTONIC_RAW) => Ok(Self::Raw),
            Ok(CLOCK_PROCESS_CPUTIME_ID) => Ok(Self::ProcessCpu(0)),
            Ok(CLOCK_THREAD_CPUTIME_ID) => Ok(Self::ThreadCpu(0)),
            Ok(_) => Err(Errno::EINVAL),
            Err(_) => Self::of_task(number),
        }
    }

    fn of_task(number: i32) -> Result<Self, Errno> {
        let id = !(number >> 3) as u32;
        match number & CPU_KIND {
            kind if kind & !CPU_THREAD > CPU_SCHED => Err(Errno::EINVAL),
            kind if kind & CPU_THREAD != 0 => Ok(Self::ThreadCpu(id)),
            _ => Ok(Self::ProcessCpu(id)),
        }
    }

    /// What it shows.
    pub fn now(self, call: &Call<'_>) -> Result<Duration, Errno> {
        let nanos = match self {
            Self::Wall => return Ok(clock::wall_now()),
            Self::Monotonic => mach::time::now().as_nanos(),
            Self::Raw => mach::time::raw_now().as_nanos(),
            Self::ProcessCpu(0) => call.thread.process.cpu_ns(),
            Self::ThreadCpu(0) => call.thread.cpu_ns(),
            Self::ProcessCpu(id) => task::family::find(id).ok_or(Errno::EINVAL)?.cpu_ns(),
            Self::ThreadCpu(id) => task::find_thread(id).ok_or(Errno::EINVAL)?.cpu_ns(),
        };
        Ok(Duration::from_nanos(nanos))
    }
}

fn clock_gettime(call: Call<'_>) -> Outcome {
    let now = Clock::from_number(call.int(0))?.now(&call)?;
    timespec::write(call.addr(1), now)?;
    Ok(0)
}

/// All clocks count nanoseconds.
fn clock_getres(call: Call<'_>) -> Outcome {
    Clock::from_number(call.int(0))?.now(&call)?;
    if let Some(at) = call.optional_addr(1) {
        timespec::write(at, Duration::from_nanos(1))?;
    }
    Ok(0)
}

fn clock_settime(call: Call<'_>) -> Outcome {
    if call.uint(0) != CLOCK_REALTIME {
        return Err(Errno::EINVAL);
    }
    let now = timespec::read(call.addr(1))?;
    set_wall(&call, now)
}

fn set_wall(call: &Call<'_>, now: Duration) -> Outcome {
    call.thread
        .credentials
        .with(|credentials| credentials.require(Capability::SysTime))?;
    mach::time::set_wall_clock(now);
    Ok(0)
}

fn gettimeofday(call: Call<'_>) -> Outcome {
    if let Some(at) = call.optional_addr(0) {
        user::write(at, timespec::words_micros(clock::wall_now()))?;
    }
    if let Some(at) = call.optional_addr(1) {
        user::write(at, [0u32; 2])?;
    }
    Ok(0)
}

fn settimeofday(call: Call<'_>) -> Outcome {
    match call.optional_addr(0) {
        Some(at) => {
            let now = timespec::read_micros(at)?;
            set_wall(&call, now)
        }
        None => Ok(0),
    }
}

fn time(call: Call<'_>) -> Outcome {
    let now = clock::wall_now().as_secs();
    if let Some(at) = call.optional_addr(0) {
        user::write(at, now)?;
    }
    Ok(now as usize)
}

fn nanosleep(call: Call<'_>) -> Outcome {
    let span = timespec::read(call.addr(0))?;
    sleep_for(&call, span, 1)
}

/// Sleeps for `span`; what is left after a signal goes to argument `rest`.
fn sleep_for(call: &Call<'_>, span: Duration, rest: usize) -> Outcome {
    let deadline = call.thread.call_deadline(mach::time::now() + span);
    let outcome = sleep_until(call, deadline);
    if outcome.is_err()
        && let Some(at) = call.optional_addr(rest)
    {
        timespec::write(at, deadline.since(mach::time::now()))?;
    }
    outcome
}

fn sleep_until(call: &Call<'_>, deadline: Instant) -> Outcome {
    while mach::time::now() < deadline {
        if call.thread.has_deliverable_signal() {
            return Err(Error::Interrupted(Restart::IfNoHandler).into());
        }
        sched::park_until(deadline);
    }
    Ok(0)
}

fn clock_nanosleep(call: Call<'_>) -> Outcome {
    let clock = Clock::from_number(call.int(0))?;
    check_waits(call.int(0))?;
    if call.uint(0) == CLOCK_THREAD_CPUTIME_ID {
        return Err(Errno::EOPNOTSUPP);
    }
    let span = timespec::read(call.addr(2))?;
    // Other flags mean nothing, as on Linux.
    let absolute = call.uint(1) & TIMER_ABSTIME != 0;
    match clock {
        Clock::Wall if absolute => sleep_until(&call, clock::instant_of_wall(span)),
        Clock::Monotonic if absolute => sleep_until(&call, Instant::START + span),
        Clock::Wall | Clock::Monotonic => sleep_for(&call, span, 3),
        Clock::Raw => Err(Errno::EOPNOTSUPP),
        // Its own does not go on while it sleeps.
        Clock::ThreadCpu(id) if [0, call.thread.id()].contains(&id) => Err(Errno::EINVAL),
        Clock::ProcessCpu(_) | Clock::ThreadCpu(_) => sleep_by(&call, clock, span, absolute),
    }
}

/// Fails for clocks that are read but never waited for.
pub fn check_waits(number: i32) -> Result<(), Errno> {
    match u32::try_from(number) {
        Ok(CLOCK_MONOTONIC_RAW | CLOCK_REALTIME_COARSE | CLOCK_MONOTONIC_COARSE) => {
            Err(Errno::EOPNOTSUPP)
        }
        _ => Ok(()),
    }
}

/// Sleeps until a clock of CPU time has got that far. It is looked at when it could be there,
/// with all CPUs at work for it.
fn sleep_by(call: &Call<'_>, clock: Clock, span: Duration, absolute: bool) -> Outcome {
    let start = if absolute {
        Duration::ZERO
    } else {
        clock.now(call)?
    };
    let target = start + span;
    loop {
        let left = target - clock.now(call)?;
        if left.is_zero() {
            return Ok(0);
        }
        if call.thread.has_deliverable_signal() {
            if let Some(at) = call.optional_addr(3).filter(|_| !absolute) {
                timespec::write(at, left)?;
            }
            return Err(Error::Interrupted(Restart::IfNoHandler).into());
        }
        let pause = Duration::from_nanos(left.as_nanos() / mach::cpu::count() as u64);
        sched::park_until(mach::time::now() + pause.max(CPU_TIME_PAUSE));
    }
}
