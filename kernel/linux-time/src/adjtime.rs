//! adjtimex(2) and clock_adjtime(2): a program adjusts the wall clock.
//!
//! The rules are `core/timekeeping`'s; here is only `struct timex` in a program's memory.

use base::Duration;
use cred::Capability;
use linux_raw_sys::general::{__NR_adjtimex, __NR_clock_adjtime};
use mach::time::{Adjusted, NtpError, Request, status};
use mm::user;

use crate::time::Clock;
use linux_abi::call::{Arg, Call, Entry, Outcome};
use linux_abi::errno::Errno;
use linux_abi::timespec;

/// The calls of this family.
pub const CALLS: &[Entry] = &[
    Entry {
        number: __NR_adjtimex,
        name: "adjtimex",
        args: &[Arg::Address],
        handler: adjtimex,
    },
    Entry {
        number: __NR_clock_adjtime,
        name: "clock_adjtime",
        args: &[Arg::Int, Arg::Address],
        handler: clock_adjtime,
    },
];

/// `struct timex` in words of 64 bits; the first and the sixth hold 32 and padding.
const WORDS: usize = 26;
const MODES: usize = 0;
const OFFSET: usize = 1;
const FREQUENCY: usize = 2;
const MAX_ERROR: usize = 3;
const EST_ERROR: usize = 4;
const STATUS: usize = 5;
const CONSTANT: usize = 6;
const PRECISION: usize = 7;
const TOLERANCE: usize = 8;
const SECONDS: usize = 9;
const FRACTION: usize = 10;
const TICK: usize = 11;
/// What lies between belongs to PPS signals, and is zero.
const TAI: usize = 20;

/// The clock is read to a microsecond, says the call.
const PRECISION_US: i64 = 1;
/// 500 parts per million, as a fraction of 2^16.
const TOLERANCE_SCALED: i64 = 500 << 16;

fn adjtimex(call: Call<'_>) -> Outcome {
    adjust(&call, 0)
}

fn clock_adjtime(call: Call<'_>) -> Outcome {
    match Clock::from_number(call.int(0))? {
        Clock::Wall => adjust(&call, 1),
        _ => Err(Errno::EOPNOTSUPP),
    }
}

fn adjust(call: &Call<'_>, index: usize) -> Outcome {
    let at = call.addr(index);
    let mut words: [i64; WORDS] = user::read(at)?;
    let may_adjust = call
        .thread
        .credentials
        .with(|credentials| credentials.require(Capability::SysTime))
        .is_ok();
    let adjusted = clock::adjust(&request(&words), may_adjust).map_err(errno)?;
    fill(&mut words, &adjusted, clock::wall_now());
    user::write(at, words)?;
    Ok(adjusted.verdict)
}

fn errno(error: NtpError) -> Errno {
    match error {
        NtpError::NotPermitted => Errno::EPERM,
        NtpError::Invalid => Errno::EINVAL,
    }
}

fn request(words: &[i64; WORDS]) -> Request {
    Request {
        modes: words[MODES] as u32,
        offset: words[OFFSET],
        frequency: words[FREQUENCY],
        max_error: words[MAX_ERROR],
        est_error: words[EST_ERROR],
        status: words[STATUS] as u32,
        constant: words[CONSTANT],
        tick: words[TICK],
        time: [words[SECONDS], words[FRACTION]],
        tai: 0,
    }
}

fn fill(words: &mut [i64; WORDS], adjusted: &Adjusted, now: Duration) {
    let modes = words[MODES];
    let state = &adjusted.state;
    *words = [0; WORDS];
    words[MODES] = modes;
    words[OFFSET] = state.offset;
    words[FREQUENCY] = state.frequency;
    words[MAX_ERROR] = state.max_error;
    words[EST_ERROR] = state.est_error;
    words[STATUS] = state.status.into();
    words[CONSTANT] = state.constant;
    words[PRECISION] = PRECISION_US;
    words[TOLERANCE] = TOLERANCE_SCALED;
    words[TICK] = state.tick;
    words[TAI] = state.tai;
    let [seconds, fraction] = match state.status & status::NANO {
        0 => timespec::words_micros(now),
        _ => timespec::words(now),
    };
    words[SECONDS] = seconds;
    words[FRACTION] = fraction;
}
