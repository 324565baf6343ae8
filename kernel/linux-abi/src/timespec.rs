//! `struct timespec` and `struct timeval` in a program's memory.

use base::{Duration, VirtAddr};
use mm::user;
use sync::{Error, Result};

const NANOS_PER_SECOND: i64 = 1_000_000_000;
const MICROS_PER_SECOND: i64 = 1_000_000;

/// Reads a `struct timespec`. Errors: `Invalid` if negative or with a whole second of
/// nanoseconds.
pub fn read(at: VirtAddr) -> Result<Duration> {
    let [seconds, nanos]: [i64; 2] = user::read(at)?;
    parse(seconds, nanos, NANOS_PER_SECOND)
}

/// Reads a `struct timeval`, by the same rules.
pub fn read_micros(at: VirtAddr) -> Result<Duration> {
    let [seconds, micros]: [i64; 2] = user::read(at)?;
    parse(seconds, micros, MICROS_PER_SECOND)
}

fn parse(seconds: i64, fraction: i64, per_second: i64) -> Result<Duration> {
    if !(0..per_second).contains(&fraction) {
        return Err(Error::Invalid);
    }
    let seconds = u64::try_from(seconds).map_err(|_| Error::Invalid)?;
    let nanos = fraction * (NANOS_PER_SECOND / per_second);
    Ok(Duration::new(seconds, nanos as u32))
}

/// The words of a `struct timespec`.
pub fn words(span: Duration) -> [i64; 2] {
    [
        i64::try_from(span.as_secs()).unwrap_or(i64::MAX),
        i64::from(span.subsec_nanos()),
    ]
}

/// The words of a `struct timeval`.
pub fn words_micros(span: Duration) -> [i64; 2] {
    [
        i64::try_from(span.as_secs()).unwrap_or(i64::MAX),
        i64::from(span.subsec_micros()),
    ]
}

/// Writes a `struct timespec`.
pub fn write(at: VirtAddr, span: Duration) -> Result<()> {
    user::write(at, words(span))
}

/// A span in nanoseconds, as far as they fit.
pub fn nanos(span: Duration) -> u64 {
    span.as_nanos()
}
