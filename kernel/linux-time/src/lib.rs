//! Linux's calls on clocks and timers: reading, setting and disciplining clocks, sleeping, POSIX
//! timers, interval timers and timerfd.
//!
//! Not here: the layouts of times, which all calls share (`linux_abi::timespec`).
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod adjtime;
mod time;
mod timer;
mod timerfd;

use linux_abi::Entry;

/// The calls of this crate.
pub const FAMILIES: &[&[Entry]] = &[adjtime::CALLS, time::CALLS, timer::CALLS, timerfd::CALLS];
