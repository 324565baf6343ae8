//! Time limits of calls that wait.

use base::{Duration, Instant, VirtAddr};
use mm::user;
use sync::{Error, Result};

use crate::call::Call;

/// `struct timespec` and `struct timeval`: seconds and a fraction.
type Pair = [i64; 2];

/// The deadline of a limit in milliseconds; negative for none.
pub fn from_millis(call: &Call<'_>, millis: i32) -> Instant {
    match u64::try_from(millis) {
        Ok(millis) => fresh(call, Duration::from_millis(millis)),
        Err(_) => Instant::NEVER,
    }
}

/// The deadline of a relative `struct timespec`; no address, no limit.
pub fn from_timespec(call: &Call<'_>, at: Option<VirtAddr>) -> Result<Instant> {
    let Some(at) = at else {
        return Ok(Instant::NEVER);
    };
    Ok(fresh(call, read_timespec(at)?))
}

/// The deadline of a relative `struct timeval`; no address, no limit.
pub fn from_timeval(call: &Call<'_>, at: Option<VirtAddr>) -> Result<Instant> {
    let Some(at) = at else {
        return Ok(Instant::NEVER);
    };
    Ok(fresh(call, read_timeval(at)?))
}

/// Reads a `struct timespec`; [`Error::Invalid`] for one that is negative or denormal.
pub fn read_timespec(at: VirtAddr) -> Result<Duration> {
    duration(user::read::<Pair>(at)?, 1)
}

/// Reads a `struct timeval`, whose fraction may be a second or more.
fn read_timeval(at: VirtAddr) -> Result<Duration> {
    let [seconds, micros] = user::read::<Pair>(at)?;
    let seconds = seconds
        .checked_add(micros.div_euclid(1_000_000))
        .ok_or(Error::Invalid)?;
    duration([seconds, micros.rem_euclid(1_000_000)], 1_000)
}

fn duration([seconds, fraction]: Pair, unit_ns: i64) -> Result<Duration> {
    let nanos = u32::try_from(fraction.saturating_mul(unit_ns)).map_err(|_| Error::Invalid)?;
    let seconds = u64::try_from(seconds).map_err(|_| Error::Invalid)?;
    if nanos >= 1_000_000_000 {
        return Err(Error::Invalid);
    }
    Ok(Duration::new(seconds, nanos))
}

/// `span` from now on; zero is a moment that has passed, and costs no look at the clock.
fn fresh(call: &Call<'_>, span: Duration) -> Instant {
    if span.is_zero() {
        return Instant::START;
    }
    call.thread.call_deadline(mach::time::now() + span)
}

/// Stores what is left of the limit at `at`, as Linux does; a bad address is ignored.
pub fn tell_remaining(at: Option<VirtAddr>, deadline: Instant) {
    tell(at, deadline, 1);
}

/// The same for a `struct timeval`.
pub fn tell_remaining_micros(at: Option<VirtAddr>, deadline: Instant) {
    tell(at, deadline, 1_000);
}

fn tell(at: Option<VirtAddr>, deadline: Instant, unit_ns: u32) {
    if let Some(at) = at {
        let left = deadline.since(mach::time::now());
        let pair = [
            left.as_secs() as i64,
            i64::from(left.subsec_nanos() / unit_ns),
        ];
        // The answer of the call stands even if this cannot be told.
        let _ = user::write::<Pair>(at, pair);
    }
}
