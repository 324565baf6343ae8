//! What adjtimex(2) asks of the clock, by the rules of Linux's manual page and RFC 5905,
//! appendix A.5.5: a phase-locked loop that works off an offset by a share of what is left
//! each second and learns a frequency from it, the older adjtime(3), and leap seconds.
//!
//! [`Ntp::second`] is the only thing that happens by itself, and it is needed only while
//! [`Ntp::is_busy`]: an untouched clock costs no wake-up. The estimate of the greatest
//! error grows with the time that has passed when somebody looks.
//!
//! Not here: PPS signals.

use crate::Speed;

/// What a [`Request`] changes: `modes` of `struct timex`.
pub mod modes {
    #![allow(missing_docs, reason = "names and values are Linux's")]
    pub const OFFSET: u32 = 0x0001;
    pub const FREQUENCY: u32 = 0x0002;
    pub const MAXERROR: u32 = 0x0004;
    pub const ESTERROR: u32 = 0x0008;
    pub const STATUS: u32 = 0x0010;
    pub const TIMECONST: u32 = 0x0020;
    pub const TAI: u32 = 0x0080;
    pub const SETOFFSET: u32 = 0x0100;
    pub const MICRO: u32 = 0x1000;
    pub const NANO: u32 = 0x2000;
    pub const TICK: u32 = 0x4000;
    pub const ADJTIME: u32 = 0x8000;
    pub const OFFSET_SINGLESHOT: u32 = 0x8001;
    /// With `OFFSET_SINGLESHOT`: only tell.
    pub const READONLY: u32 = 0x2000;
}

/// Bits of `status`.
pub mod status {
    #![allow(missing_docs, reason = "names and values are Linux's")]
    pub const PLL: u32 = 0x0001;
    pub const PPSFREQ: u32 = 0x0002;
    pub const PPSTIME: u32 = 0x0004;
    pub const FLL: u32 = 0x0008;
    pub const INS: u32 = 0x0010;
    pub const DEL: u32 = 0x0020;
    pub const UNSYNC: u32 = 0x0040;
    pub const FREQHOLD: u32 = 0x0080;
    pub const CLOCKERR: u32 = 0x1000;
    pub const NANO: u32 = 0x2000;
    pub const MODE: u32 = 0x4000;
    /// What only the kernel sets.
    pub const READ_ONLY: u32 = 0xff00;
}

const FREQUENCY_MAX_SCALED_NS: i64 = 500_000 << 32;
/// A frequency in `struct timex` is in parts per million as a fraction of 2^16.
const SCALED_NS_PER_SCALED_PPM: i64 = 1000 << 16;
const PHASE_MAX_NS: i64 = 500_000_000;
const ERROR_MAX_US: i64 = 16_000_000;
const ERROR_GROWS_US: i64 = 500;
const SINGLE_MAX_US: i64 = 500;
const CONSTANT_MAX: i64 = 10;
const TAI_MAX: i64 = 100_000;
/// Microseconds per tick of 100 a second, and how far a program may bend it.
const TICK_US: i64 = 10_000;
const TICKS_PER_SECOND: i64 = 100;
const TICK_RANGE_US: core::ops::RangeInclusive<i64> = 9_000..=11_000;
const PLL_SHIFT: u32 = 2;
const FLL_SHIFT: u32 = 2;
/// Between these the frequency-locked loop is used if asked for, and above always.
const FLL_MIN_SECONDS: i64 = 256;
const FLL_MAX_SECONDS: i64 = 2048;
/// A share of the greatest offset is less.
const PHASE_SPEED_MAX: Speed = Speed::from_ppm(500_000);
const DAY_SECONDS: i64 = 86_400;

/// Why a request cannot be fulfilled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NtpError {
    /// The caller may not adjust clocks.
    NotPermitted,
    /// A value out of its range.
    Invalid,
}

/// The part of `struct timex` that goes both ways.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Request {
    /// What to change.
    pub modes: u32,
    /// Nanoseconds or microseconds.
    pub offset: i64,
    /// Parts per million, as a fraction of 2^16.
    pub frequency: i64,
    /// Microseconds.
    pub max_error: i64,
    /// Microseconds.
    pub est_error: i64,
    /// See [`status`].
    pub status: u32,
    /// The loop's time constant.
    pub constant: i64,
    /// Microseconds.
    pub tick: i64,
    /// Seconds and a fraction to add to the clock at once.
    pub time: [i64; 2],
    /// The difference between TAI and UTC in seconds.
    pub tai: i64,
}

/// What a request did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Adjusted {
    /// The state after it. [`Request::time`] is left to the caller.
    pub state: Request,
    /// What the call returns: `TIME_OK` to `TIME_ERROR`.
    pub verdict: usize,
    /// By how much the wall clock is to move at once.
    pub step_ns: i128,
}

/// `TIME_ERROR`.
const ERROR: usize = 5;

/// How far a leap second is; the values are the call's.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Leap {
    #[default]
    None = 0,
    Inserts = 1,
    Deletes = 2,
    InProgress = 3,
    Over = 4,
}

/// The state that adjtimex(2) reads and writes.
#[derive(Clone, Debug)]
pub struct Ntp {
    offset_ns: i64,
    single_us: i64,
    /// Nanoseconds per second, as a fraction of 2^32.
    frequency: i64,
    tick_us: i64,
    constant: i64,
    max_error_us: i64,
    est_error_us: i64,
    status: u32,
    tai: i64,
    leap: Leap,
    /// Seconds since the start: of the last offset, and to which the error has grown.
    offset_at: i64,
    grown_to: i64,
}

impl Default for Ntp {
    fn default() -> Self {
        Self {
            offset_ns: 0,
            single_us: 0,
            frequency: 0,
            tick_us: TICK_US,
            constant: 2,
            max_error_us: ERROR_MAX_US,
            est_error_us: ERROR_MAX_US,
            status: status::UNSYNC,
            tai: 0,
            leap: Leap::None,
            offset_at: 0,
            grown_to: 0,
        }
    }
}

impl Ntp {
    /// Whether [`Self::second`] has something to do.
    pub fn is_busy(&self) -> bool {
        self.offset_ns != 0
            || self.single_us != 0
            || self.leap != Leap::None
            || self.status & (status::INS | status::DEL) != 0
    }

    /// How much faster the clock runs while nothing is being worked off.
    pub fn steady(&self) -> Speed {
        Speed::from_scaled_ns(self.frequency)
            .plus(Speed::from_ppm((self.tick_us - TICK_US) * TICKS_PER_SECOND))
    }

    /// Works off `us` at the most that adjtime(3) allows, instead of what was left.
    pub fn slew(&mut self, us: i64) {
        self.single_us = us;
    }

    /// The clock was set: nothing is known of its error any more.
    pub fn clear(&mut self) {
        self.single_us = 0;
        self.offset_ns = 0;
        self.status |= status::UNSYNC;
        self.max_error_us = ERROR_MAX_US;
        self.est_error_us = ERROR_MAX_US;
        self.leap = Leap::None;
    }

    /// A second of the clock begins: how much faster than [`Self::steady`] it runs, and by
    /// how many seconds it is to be put forward for a leap second, when it shows `wall_s`
    /// since 1970.
    pub fn second(&mut self, wall_s: i64) -> (Speed, i64) {
        let shift = PLL_SHIFT + self.constant as u32;
        let share = match self.offset_ns / (1 << shift) {
            0 => self.offset_ns,
            share => share,
        };
        self.offset_ns -= share;
        let single = self.single_us.clamp(-SINGLE_MAX_US, SINGLE_MAX_US);
        self.single_us -= single;
        let share = Speed::gaining(share, crate::SECOND_NS, PHASE_SPEED_MAX);
        let extra = share.plus(Speed::from_ppm(single));
        (extra, self.leap_second(wall_s))
    }

    fn leap_second(&mut self, wall_s: i64) -> i64 {
        let of_day = wall_s.rem_euclid(DAY_SECONDS);
        let is_wanted = |bit| self.status & bit != 0;
        let (next, step) = match self.leap {
            Leap::None if is_wanted(status::INS) => (Leap::Inserts, 0),
            Leap::None if is_wanted(status::DEL) => (Leap::Deletes, 0),
            Leap::Inserts if !is_wanted(status::INS) => (Leap::None, 0),
            Leap::Deletes if !is_wanted(status::DEL) => (Leap::None, 0),
            Leap::Inserts if of_day == 0 => (Leap::InProgress, -1),
            Leap::Deletes if of_day == DAY_SECONDS - 1 => (Leap::Over, 1),
            Leap::InProgress => (Leap::Over, 0),
            Leap::Over if !is_wanted(status::INS | status::DEL) => (Leap::None, 0),
            same => (same, 0),
        };
        self.leap = next;
        self.tai -= step;
        step
    }

    /// What the call does at `now_s` seconds since the start; nothing changes on an error.
    pub fn adjust(
        &mut self,
        request: &Request,
        may_adjust: bool,
        now_s: i64,
    ) -> Result<Adjusted, NtpError> {
        check(request, may_adjust)?;
        self.grow(now_s);
        let mut step_ns = 0;
        let mut offset = None;
        if request.modes & modes::ADJTIME != 0 {
            offset = Some(self.single_us);
            if request.modes & modes::READONLY == 0 {
                self.single_us = request.offset;
            }
        } else {
            self.change(request, now_s);
            if request.modes & modes::SETOFFSET != 0 {
                step_ns = step(request);
            }
        }
        Ok(Adjusted {
            state: self.state(offset),
            verdict: self.verdict(),
            step_ns,
        })
    }

    /// The greatest possible error, as it has become by now.
    fn grow(&mut self, now_s: i64) {
        let seconds = now_s - core::mem::replace(&mut self.grown_to, now_s);
        let grown = seconds.saturating_mul(ERROR_GROWS_US);
        self.max_error_us = self.max_error_us.saturating_add(grown);
        if self.max_error_us > ERROR_MAX_US {
            self.max_error_us = ERROR_MAX_US;
            self.status |= status::UNSYNC;
        }
    }

    fn change(&mut self, request: &Request, now_s: i64) {
        let asks = |mode| request.modes & mode != 0;
        if asks(modes::STATUS) {
            self.set_status(request.status, now_s);
        }
        if asks(modes::NANO) {
            self.status |= status::NANO;
        }
        if asks(modes::MICRO) {
            self.status &= !status::NANO;
        }
        if asks(modes::FREQUENCY) {
            self.set_frequency(request.frequency.saturating_mul(SCALED_NS_PER_SCALED_PPM));
        }
        if asks(modes::MAXERROR) {
            self.max_error_us = request.max_error.clamp(0, ERROR_MAX_US);
        }
        if asks(modes::ESTERROR) {
            self.est_error_us = request.est_error.clamp(0, ERROR_MAX_US);
        }
        if asks(modes::TIMECONST) {
            // The constant of the microkernel's days counts from 4 less.
            let more = if self.has(status::NANO) { 0 } else { 4 };
            self.constant = request
                .constant
                .clamp(0, CONSTANT_MAX)
                .saturating_add(more)
                .min(CONSTANT_MAX);
        }
        if asks(modes::TAI) && (0..=TAI_MAX).contains(&request.constant) {
            self.tai = request.constant;
        }
        if asks(modes::OFFSET) {
            self.set_offset(request.offset, now_s);
        }
        if asks(modes::TICK) {
            self.tick_us = request.tick;
        }
    }

    fn has(&self, bits: u32) -> bool {
        self.status & bits != 0
    }

    fn set_status(&mut self, wanted: u32, now_s: i64) {
        if self.has(status::PLL) && wanted & status::PLL == 0 {
            self.leap = Leap::None;
            self.status = status::UNSYNC;
        }
        if !self.has(status::PLL) && wanted & status::PLL != 0 {
            self.offset_at = now_s;
        }
        self.status = (self.status & status::READ_ONLY) | (wanted & !status::READ_ONLY & 0xffff);
    }

    fn set_frequency(&mut self, scaled: i64) {
        self.frequency = scaled.clamp(-FREQUENCY_MAX_SCALED_NS, FREQUENCY_MAX_SCALED_NS);
    }

    fn set_offset(&mut self, offset: i64, now_s: i64) {
        if !self.has(status::PLL) {
            return;
        }
        let ns = match self.has(status::NANO) {
            true => offset,
            false => offset.clamp(-1_000_000, 1_000_000) * 1000,
        };
        let ns = ns.clamp(-PHASE_MAX_NS, PHASE_MAX_NS);
        let since = now_s - core::mem::replace(&mut self.offset_at, now_s);
        let since = if self.has(status::FREQHOLD) { 0 } else { since };
        let learned = self.fll(ns, since) + self.pll(ns, since);
        let frequency = i128::from(self.frequency) + learned;
        let limit = i128::from(FREQUENCY_MAX_SCALED_NS);
        self.frequency = frequency.clamp(-limit, limit) as i64;
        self.offset_ns = ns;
    }

    fn pll(&self, ns: i64, since: i64) -> i128 {
        let seconds = since.min(1 << (PLL_SHIFT + 1 + self.constant as u32));
        let product = (i128::from(ns) * i128::from(seconds)) << 32;
        product >> (2 * (PLL_SHIFT + 2 + self.constant as u32))
    }

    fn fll(&mut self, ns: i64, since: i64) -> i128 {
        self.status &= !status::MODE;
        if since < FLL_MIN_SECONDS || (!self.has(status::FLL) && since <= FLL_MAX_SECONDS) {
            return 0;
        }
        self.status |= status::MODE;
        (i128::from(ns) << (32 - FLL_SHIFT)) / i128::from(since)
    }

    fn state(&self, single: Option<i64>) -> Request {
        let offset = match self.has(status::NANO) {
            true => self.offset_ns,
            false => self.offset_ns / 1000,
        };
        Request {
            modes: 0,
            offset: single.unwrap_or(offset),
            frequency: self.frequency / SCALED_NS_PER_SCALED_PPM,
            max_error: self.max_error_us,
            est_error: self.est_error_us,
            status: self.status,
            constant: self.constant,
            tick: self.tick_us,
            time: [0; 2],
            tai: self.tai,
        }
    }

    fn verdict(&self) -> usize {
        // There is no PPS signal, so who relies on one has an error.
        let errors = status::UNSYNC | status::CLOCKERR | status::PPSFREQ | status::PPSTIME;
        match self.has(errors) {
            true => ERROR,
            false => self.leap as usize,
        }
    }
}

fn check(request: &Request, may_adjust: bool) -> Result<(), NtpError> {
    let asks = |mode| request.modes & mode != 0;
    if asks(modes::ADJTIME) {
        if !asks(modes::OFFSET) {
            return Err(NtpError::Invalid);
        }
        return match asks(modes::READONLY) || may_adjust {
            true => Ok(()),
            false => Err(NtpError::NotPermitted),
        };
    }
    if request.modes != 0 && !may_adjust {
        return Err(NtpError::NotPermitted);
    }
    let fractions = if asks(modes::NANO) {
        1_000_000_000
    } else {
        1_000_000
    };
    let is_bad = (asks(modes::TICK) && !TICK_RANGE_US.contains(&request.tick))
        || (asks(modes::SETOFFSET) && !(0..fractions).contains(&request.time[1]))
        || (asks(modes::FREQUENCY)
            && request
                .frequency
                .checked_mul(SCALED_NS_PER_SCALED_PPM)
                .is_none());
    match is_bad {
        true => Err(NtpError::Invalid),
        false => Ok(()),
    }
}

fn step(request: &Request) -> i128 {
    let [seconds, fraction] = request.time.map(i128::from);
    let unit = match request.modes & modes::NANO {
        0 => 1000,
        _ => 1,
    };
    seconds * i128::from(crate::SECOND_NS) + fraction * unit
}
