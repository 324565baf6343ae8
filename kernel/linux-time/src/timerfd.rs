//! timerfd_create, timerfd_settime, timerfd_gettime.

use base::{Duration, Instant};
use ipc::timerfd::{Schedule, TimerFd};
use linux_raw_sys::general::{
    __NR_timerfd_create, __NR_timerfd_gettime, __NR_timerfd_settime, CLOCK_BOOTTIME,
    CLOCK_BOOTTIME_ALARM, CLOCK_MONOTONIC, CLOCK_REALTIME, CLOCK_REALTIME_ALARM, O_CLOEXEC,
    O_NONBLOCK, TFD_TIMER_ABSTIME, TFD_TIMER_CANCEL_ON_SET,
};
use mm::user;
use sync::{Error, Result};
use vfs::file::{OpenFile, StatusFlags};

use linux_abi::call::{Arg, Call, Entry, Outcome};
use linux_abi::descriptor::only;
use linux_abi::errno::Errno;
use linux_abi::timespec;

/// The calls of this family.
pub const CALLS: &[Entry] = &[
    Entry {
        number: __NR_timerfd_create,
        name: "timerfd_create",
        args: &[Arg::Int, Arg::Flags],
        handler: create,
    },
    Entry {
        number: __NR_timerfd_settime,
        name: "timerfd_settime",
        args: &[Arg::Fd, Arg::Flags, Arg::Address, Arg::Address],
        handler: settime,
    },
    Entry {
        number: __NR_timerfd_gettime,
        name: "timerfd_gettime",
        args: &[Arg::Fd, Arg::Address],
        handler: gettime,
    },
];

fn create(call: Call<'_>) -> Outcome {
    let follows_wall_clock = match call.uint(0) {
        CLOCK_REALTIME | CLOCK_REALTIME_ALARM => true,
        CLOCK_MONOTONIC | CLOCK_BOOTTIME | CLOCK_BOOTTIME_ALARM => false,
        _ => return Err(Errno::EINVAL),
    };
    let flags = only(call.uint(1), O_CLOEXEC | O_NONBLOCK)?;
    Ok(call.open_fd(TimerFd::new(follows_wall_clock), StatusFlags::RDWR, flags)?)
}

fn timer_of(open: &OpenFile) -> Result<&TimerFd> {
    open.file.as_any().downcast_ref().ok_or(Error::Invalid)
}

/// Stores what is left and the interval: `struct itimerspec` has the interval first.
fn tell(at: base::VirtAddr, (left, interval): (Duration, Duration)) -> Result<()> {
    let [[a, b], [c, d]] = [timespec::words(interval), timespec::words(left)];
    user::write(at, [a, b, c, d])
}

fn settime(call: Call<'_>) -> Outcome {
    let flags = only(call.uint(1), TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET)?;
    let interval = timespec::read(call.addr(2))?;
    let value = timespec::read(call.addr(2) + 16)?;
    let open = call.file(0)?;
    let timer = timer_of(&open)?;
    let before = timer.remaining();
    let next = match flags & TFD_TIMER_ABSTIME != 0 {
        _ if value.is_zero() => Instant::NEVER,
        true if timer.follows_wall_clock => clock::instant_of_wall(value),
        true => Instant::START + value,
        false => mach::time::now() + value,
    };
    timer.set(Schedule { next, interval });
    if let Some(old) = call.optional_addr(3) {
        tell(old, before)?;
    }
    Ok(0)
}

fn gettime(call: Call<'_>) -> Outcome {
    let open = call.file(0)?;
    tell(call.addr(1), timer_of(&open)?.remaining())?;
    Ok(0)
}
