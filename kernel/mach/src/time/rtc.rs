//! The PC's clock chip (MC146818): the date, to the second.
//!
//! QEMU's chip starts at a whole second, so it is up to one late, and then runs with the
//! host's wall clock, also while the machine is stopped.

use arch::instr::{in8, out8};
use base::Duration;
use timekeeping::{Rate, Reading};

const INDEX: u16 = 0x70;
const VALUE: u16 = 0x71;
const STATUS_A: u8 = 0x0a;
const STATUS_B: u8 = 0x0b;
const UPDATING: u8 = 0x80;
const BINARY: u8 = 4;
const HOURS_24: u8 = 2;
const AFTERNOON: u8 = 0x80;

/// Seconds, minutes, hours, day, month, year of the century.
const REGISTERS: [u8; 6] = [0, 2, 4, 7, 8, 9];
const TRIES_MAX: usize = 10_000;

fn read(register: u8) -> u8 {
    // SAFETY: the chip's ports reach no memory; only the boot CPU uses them.
    unsafe {
        out8(INDEX, register);
        in8(VALUE)
    }
}

/// Time since 1970; `None` if there is no chip.
pub(super) fn since_1970() -> Option<Duration> {
    let status = read(STATUS_B);
    if status == 0xff {
        return None;
    }
    let raw = stable()?;
    let decode = |byte| u64::from(decoded(status, byte));
    let hour = match (status & HOURS_24 != 0, raw[2] & AFTERNOON != 0) {
        (true, _) => decode(raw[2]),
        (false, late) => decode(raw[2] & !AFTERNOON) % 12 + if late { 12 } else { 0 },
    };
    let days = days_since_1970(2000 + decode(raw[5]), decode(raw[4]), decode(raw[3]))?;
    Some(Duration::from_secs(
        days * 86_400 + hour * 3600 + decode(raw[1]) * 60 + decode(raw[0]),
    ))
}

/// The registers, read twice alike while no update was going on.
fn stable() -> Option<[u8; 6]> {
    let read_all = || REGISTERS.map(read);
    (0..TRIES_MAX).find_map(|_| {
        let quiet = read(STATUS_A) & UPDATING == 0;
        let (first, second) = (read_all(), read_all());
        (quiet && first == second).then_some(first)
    })
}

/// Reads of a second's register after which the chip is taken to stand.
const POLLS_MAX: u32 = 10_000_000;
/// The chip's seconds as microseconds: a change of second is as sharp as its bracket.
const MICROS: u64 = 1_000_000;

/// The speed of the time-stamp counter, by waiting for two changes of the second.
pub(super) fn tsc_rate() -> Option<Rate> {
    since_1970()?;
    let (start, end) = (change_of_second()?, change_of_second()?);
    let round = 60 * MICROS;
    let counts = (end.count + round - start.count) % round;
    Rate::between(MICROS, counts, start, end)
}

fn change_of_second() -> Option<Reading> {
    let first = read(0);
    let mut before = super::cycles();
    for _ in 0..POLLS_MAX {
        let now = read(0);
        let after = super::cycles();
        if now != first {
            let count = u64::from(decoded(read(STATUS_B), now)) * MICROS;
            return Some(Reading {
                before,
                count,
                after,
            });
        }
        before = after;
    }
    None
}

fn decoded(status: u8, byte: u8) -> u8 {
    match status & BINARY {
        0 => (byte >> 4) * 10 + (byte & 0xf),
        _ => byte,
    }
}

/// Days from 1 January 1970 to a date of the Gregorian calendar, counting years from March
/// so that the leap day comes last.
fn days_since_1970(year: u64, month: u64, day: u64) -> Option<u64> {
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day - 1;
    Some(days - 719_468)
}
