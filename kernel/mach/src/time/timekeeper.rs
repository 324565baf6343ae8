//! Keeping the clock: what it is made of, and who may bend it.
//!
//! Two lines lie on the time-stamp counter. The *steady* one follows a reference
//! (`timekeeping::Discipline`); the *shown* one is the monotonic clock and runs faster or
//! slower than that as adjtimex(2) asks. The wall clock is an offset to the shown one. It
//! follows the host until a program takes it over by setting or adjusting it: under KVM
//! by the paravirtual wall clock, by slewing, else by the clock chip, which shows only that
//! the host's time ran on while the machine stood; differences above [`STEP_MIN_NS`] are
//! jumped over.
//!
//! Lock order: the timekeeper's is innermost.

use base::{Duration, Instant};
use timekeeping::{Adjusted, Discipline, Ntp, NtpError, Rate, Request, Scale, Speed, Watch, modes};

use super::clock;
use super::reference::Device;
use super::{kvmclock, rtc, timer};
use crate::sync::Spin;
use crate::vdso::Shown;

const SECOND: Duration = Duration::from_secs(1);
/// A wall clock that is off by more jumps; by less, it is slewed within minutes.
const STEP_MIN_NS: i64 = 50_000_000;
/// Less than this is left alone.
const SLEW_MIN_NS: i64 = 100_000;
/// Nothing that is worked off needs a clock that much faster or slower.
const EXTRA_MAX: Speed = Speed::from_ppm(500_000);
/// What is left below is forgotten.
const OWED_MIN_NS: i64 = 1000;

/// How the wall clock follows the host's.
enum Host {
    /// By KVM's paravirtual wall clock.
    Paravirtual,
    /// By the clock chip.
    Chip { watch: Watch, due: Instant },
    /// Not at all: there is nothing to go by, or a program keeps it.
    Unknown,
}

struct Timekeeper {
    rate: Rate,
    steady: Scale,
    shown: Shown,
    discipline: Option<(Device, Discipline)>,
    due: Instant,
    host: Host,
    ntp: Ntp,
    /// What is being worked off at present, beyond the steady adjustment.
    extra: Speed,
    extra_since: Instant,
    owed_ns: i64,
}

/// The machine has one clock, which it keeps right.
static TIMEKEEPER: Spin<Option<Timekeeper>> = Spin::new(None);

/// Starts the clock at zero; it runs by `rate` until `device` says better.
pub(super) fn start(base_ticks: u64, rate: Rate, device: Option<Device>) {
    let scale = Scale::starting(base_ticks, rate.hertz);
    let shown = Shown {
        scale,
        wall_offset_ns: 0,
        raw: scale,
    };
    let discipline = device.map(|device| {
        let first = device.read_well();
        let now_ns = scale.at(first.middle());
        let discipline = Discipline::new(device.reference(), rate, first, now_ns);
        (device, discipline)
    });
    clock::publish(|_| shown);
    let mut timekeeper = Timekeeper {
        rate,
        steady: scale,
        shown,
        due: Instant::NEVER,
        discipline,
        host: Host::Unknown,
        ntp: Ntp::default(),
        extra: Speed::NOMINAL,
        extra_since: Instant::START,
        owed_ns: 0,
    };
    timekeeper.due = timekeeper.next_sample();
    *TIMEKEEPER.lock() = Some(timekeeper);
}

/// Sets the wall clock by the best that the machine has.
pub(crate) fn init_wall() {
    with(|timekeeper| {
        let (host, since_1970) = match timekeeper.discipline {
            Some((Device::KvmClock, _)) => {
                let (reading, zero) = (kvmclock::read(), kvmclock::wall_at_zero());
                (Host::Paravirtual, Some(zero.wrapping_add(reading.count)))
            }
            _ => {
                let chip = Host::Chip {
                    watch: Watch::default(),
                    due: clock::now(),
                };
                match rtc::since_1970() {
                    Some(shown) => (chip, Some(shown.as_nanos())),
                    None => (Host::Unknown, None),
                }
            }
        };
        timekeeper.host = host;
        if let Some(since_1970) = since_1970 {
            timekeeper.set_wall(since_1970);
        }
    });
}

/// The host's clock showed this a moment ago, so it is later now.
pub fn wall_is_after(since_1970: Duration) {
    with(|timekeeper| {
        let is_behind = clock::wall_now_ns() < since_1970.as_nanos();
        match timekeeper.host {
            Host::Paravirtual => timekeeper.follow_paravirtual(),
            _ if is_behind => timekeeper.set_wall(since_1970.as_nanos()),
            _ => {}
        }
    });
}

/// A program sets the wall clock: it is `since_1970` now, and no more the host's.
pub fn set_wall_clock(since_1970: Duration) {
    with(|timekeeper| {
        timekeeper.host = Host::Unknown;
        timekeeper.ntp.clear();
        timekeeper.set_wall(since_1970.as_nanos());
    });
}

/// A program adjusts the clock, or asks for its state. After a change that is to be worked
/// off, [`work_off`] is due.
///
/// # Errors
/// As [`Ntp::adjust`].
pub fn adjust(request: &Request, may_adjust: bool) -> Result<Adjusted, NtpError> {
    let mut timekeeper = TIMEKEEPER.lock();
    let timekeeper = timekeeper
        .as_mut()
        .expect("the clock runs before programs do");
    let now_s = clock::now().as_millis() as i64 / 1000;
    let adjusted = timekeeper.ntp.adjust(request, may_adjust, now_s)?;
    let only_reads = request.modes & modes::ADJTIME != 0 && request.modes & modes::READONLY != 0;
    if request.modes != 0 && !only_reads {
        timekeeper.host = Host::Unknown;
        timekeeper.step_wall(adjusted.step_ns);
        timekeeper.bend();
    }
    Ok(adjusted)
}

/// Whether [`work_off`] is due each second.
pub fn has_to_work_off() -> bool {
    with(|timekeeper| timekeeper.works_off()).unwrap_or(false)
}

/// A second of what adjtimex(2) asked for; false when it is done.
pub fn work_off() -> bool {
    with(Timekeeper::second).unwrap_or(false)
}

/// Looks at the references that are due; returns when to look again. By the boot CPU.
pub fn follow() -> Instant {
    with(|timekeeper| {
        let now = clock::now();
        if timekeeper.due <= now {
            timekeeper.sample();
        }
        timekeeper.watch_chip(now);
        timekeeper.next()
    })
    .unwrap_or(Instant::NEVER)
}

fn with<T>(work: impl FnOnce(&mut Timekeeper) -> T) -> Option<T> {
    TIMEKEEPER.lock().as_mut().map(work)
}

impl Timekeeper {
    fn next_sample(&self) -> Instant {
        self.discipline
            .as_ref()
            .map_or(Instant::NEVER, |(_, discipline)| {
                clock::now() + Duration::from_nanos(discipline.span_ns())
            })
    }

    fn next(&self) -> Instant {
        match self.host {
            Host::Chip { due, .. } => self.due.min(due),
            _ => self.due,
        }
    }

    fn sample(&mut self) {
        if let Some((device, discipline)) = &mut self.discipline {
            let reading = device.read_well();
            let shown_ns = self.steady.at(reading.middle());
            discipline.take(reading, shown_ns);
            self.rate = discipline.rate();
            self.bend();
        }
        if let Host::Paravirtual = self.host {
            self.follow_paravirtual();
        }
        self.due = self.next_sample();
    }

    fn follow_paravirtual(&mut self) {
        let zero = kvmclock::wall_at_zero();
        let reading = kvmclock::read();
        let host_ns = zero.wrapping_add(reading.count);
        let shown_ns = self.shown.scale.at(reading.middle()) + self.shown.wall_offset_ns;
        let error_ns = host_ns.wrapping_sub(shown_ns) as i64;
        if error_ns.saturating_abs() > STEP_MIN_NS {
            self.step_wall(error_ns.into());
        } else if error_ns.abs() > SLEW_MIN_NS {
            self.ntp.slew(error_ns / 1000);
        }
    }

    fn watch_chip(&mut self, now: Instant) {
        let Host::Chip { watch, due } = &mut self.host else {
            return;
        };
        if *due > now {
            return;
        }
        let before = clock::wall_now_ns() as i64;
        let seconds = rtc::since_1970().map(|shown| shown.as_secs() as i64);
        let after = clock::wall_now_ns() as i64;
        let step = seconds.map_or(0, |seconds| watch.take(before, seconds, after));
        let wait = Duration::from_nanos(watch.wait_ns(after + step));
        *due = clock::now() + wait;
        self.step_wall(step.into());
    }

    fn works_off(&self) -> bool {
        self.ntp.is_busy() || self.extra != Speed::NOMINAL
    }

    /// What was gained since the last second is measured, so that a late call does no harm.
    fn second(&mut self) -> bool {
        let now = clock::now();
        let spent = now.since(self.extra_since).as_nanos();
        self.owed_ns -= self.extra.gained_in(spent);
        self.extra_since = now;
        if self.ntp.is_busy() {
            let wall_s = (clock::wall_now_ns() / SECOND.as_nanos()) as i64;
            let (extra, leap_s) = self.ntp.second(wall_s);
            self.owed_ns += extra.gained_in(SECOND.as_nanos());
            self.step_wall(i128::from(leap_s) * i128::from(SECOND.as_nanos()));
        } else if self.owed_ns.abs() < OWED_MIN_NS {
            self.owed_ns = 0;
        }
        self.extra = Speed::gaining(self.owed_ns, SECOND.as_nanos(), EXTRA_MAX);
        self.bend();
        self.works_off()
    }

    /// Lets both lines go on from here with the slopes that they ought to have.
    fn bend(&mut self) {
        let slew = self
            .discipline
            .as_ref()
            .map_or(Speed::NOMINAL, |(_, discipline)| discipline.slew());
        let asked = slew.plus(self.ntp.steady()).plus(self.extra);
        let hertz = self.rate.hertz;
        clock::publish(|ticks| {
            self.steady = self.steady.bent(ticks, Scale::slope(hertz, slew));
            self.shown.scale = self.shown.scale.bent(ticks, Scale::slope(hertz, asked));
            self.shown
        });
        timer::follow(self.shown.scale.multiplier);
    }

    fn set_wall(&mut self, since_1970_ns: u64) {
        if let Host::Chip { watch, .. } = &mut self.host {
            *watch = Watch::default();
        }
        clock::publish(|ticks| {
            self.shown.wall_offset_ns = since_1970_ns.saturating_sub(self.shown.scale.at(ticks));
            self.shown
        });
    }

    fn step_wall(&mut self, step_ns: i128) {
        if step_ns != 0 {
            let moved = i128::from(self.shown.wall_offset_ns) + step_ns;
            let limit = i128::from(u64::MAX / 2);
            self.shown.wall_offset_ns = moved.clamp(0, limit) as u64;
            clock::publish(|_| self.shown);
        }
    }
}
