//! A machine whose host stops it: counters that run on or stand, readings with pauses at
//! any point of them.

use models::Random;
use timekeeping::{
    Calibration, Discipline, Outcome, Rate, Reading, Reference, Scale, Speed, Watch,
};

const PM_TIMER: Reference = Reference {
    hertz: 3_579_545,
    bits: 24,
};
const INTERVAL_TIMER: Reference = Reference {
    hertz: 1_193_182,
    bits: 16,
};
const KVM_CLOCK: Reference = Reference {
    hertz: 1_000_000_000,
    bits: 64,
};
const SECOND: u64 = 1_000_000_000;

/// True time in nanoseconds, and counters that follow from it.
struct Host {
    now_ns: u64,
    /// Time that the counters did not see.
    stood_ns: u64,
    tsc_hertz: u64,
    reference: Reference,
    random: Random,
    /// One step in so many meets a pause.
    pause_one_in: u64,
    pause_max_ns: u64,
}

impl Host {
    fn new(seed: u64, reference: Reference) -> Self {
        let mut random = Random::new(seed);
        Self {
            now_ns: 0,
            stood_ns: 0,
            tsc_hertz: 1_000_000_000 + random.below(3_000_000_000),
            reference,
            random,
            pause_one_in: 50,
            pause_max_ns: 200_000_000,
        }
    }

    fn step(&mut self) {
        self.now_ns += 300 + self.random.below(700);
        if self.random.once_in(self.pause_one_in) {
            self.now_ns += self.random.below(self.pause_max_ns);
        }
    }

    fn ran_ns(&self) -> u64 {
        self.now_ns - self.stood_ns
    }

    fn tsc(&self) -> u64 {
        (u128::from(self.ran_ns()) * u128::from(self.tsc_hertz) / 1_000_000_000) as u64
    }

    fn counts(&self) -> u64 {
        let counts = u128::from(self.ran_ns()) * u128::from(self.reference.hertz) / 1_000_000_000;
        counts as u64 & (u64::MAX >> (64 - self.reference.bits))
    }

    fn reading(&mut self) -> Reading {
        self.step();
        let before = self.tsc();
        self.step();
        let count = self.counts();
        self.step();
        Reading {
            before,
            count,
            after: self.tsc(),
        }
    }

    fn narrowest(&mut self) -> Reading {
        let first = self.reading();
        (0..7).fold(first, |best, _| best.narrower(self.reading()))
    }

    fn calibrate(&mut self) -> Option<Rate> {
        let mut calibration = Calibration::new(self.reference);
        while !calibration.is_hopeless() {
            let reading = self.reading();
            if let Some(rate) = calibration.take(reading) {
                return Some(rate);
            }
        }
        calibration.best()
    }

    fn off_ppm(&self, rate: Rate) -> u64 {
        rate.hertz.abs_diff(self.tsc_hertz) * 1_000_000 / self.tsc_hertz
    }
}

fn for_each_seed(count: u64, test: impl Fn(u64)) {
    let first = std::env::var("SEED")
        .ok()
        .and_then(|seed| seed.parse().ok());
    let seeds = first.map_or(1..count + 1, |seed: u64| seed..seed + 1);
    for seed in seeds {
        println!("SEED={seed}");
        test(seed);
    }
}

#[test]
fn a_calibration_is_sharp_however_often_the_host_pauses() {
    for_each_seed(300, |seed| {
        for reference in [PM_TIMER, INTERVAL_TIMER, KVM_CLOCK] {
            let mut host = Host::new(seed, reference);
            host.pause_one_in = 3 + seed % 500;
            let rate = host.calibrate().expect("the reference counts");
            assert!(
                host.off_ppm(rate) <= 1000,
                "{} ppm off, {rate:?}",
                host.off_ppm(rate)
            );
        }
    });
}

#[test]
fn a_pause_between_any_two_steps_of_a_calibration_does_not_make_it_lie() {
    for_each_seed(2000, |seed| {
        let mut host = Host::new(seed, INTERVAL_TIMER);
        host.pause_one_in = u64::MAX;
        let mut calibration = Calibration::new(host.reference);
        let paused = host.random.below(9_000);
        let rate = (0..).find_map(|step| {
            if step == paused {
                host.pause_one_in = 1;
                host.pause_max_ns = 10 * SECOND;
            }
            let reading = host.reading();
            host.pause_one_in = u64::MAX;
            calibration.take(reading)
        });
        let rate = rate.expect("the host is quiet but once");
        assert!(host.off_ppm(rate) <= 1000, "{} ppm off", host.off_ppm(rate));
    });
}

#[test]
fn a_reference_that_stands_still_is_given_up() {
    let mut host = Host::new(1, Reference { hertz: 0, bits: 16 });
    assert_eq!(host.calibrate(), None);
}

/// A machine's clock after boot.
struct Machine {
    host: Host,
    discipline: Discipline,
    scale: Scale,
}

impl Machine {
    /// The clock starts now, at a speed that is wrong by `off_ppm`.
    fn boot(mut host: Host, off_ppm: i64, doubt_ppb: u64) -> Self {
        let rate = Rate {
            hertz: Speed::from_ppm(off_ppm).applied_to(host.tsc_hertz),
            doubt_ppb,
        };
        let scale = Scale::starting(host.tsc(), rate.hertz);
        let first = host.narrowest();
        let shown = scale.at(first.middle());
        let discipline = Discipline::new(host.reference, rate, first, shown);
        Self {
            host,
            discipline,
            scale,
        }
    }

    fn now(&self) -> u64 {
        self.scale.at(self.host.tsc())
    }

    /// Until the next sample, and that; the clock never goes back meanwhile.
    fn step(&mut self) -> Outcome {
        let late = self.host.random.below(50_000_000);
        self.host.now_ns += self.discipline.span_ns() + late;
        let reading = self.host.narrowest();
        let outcome = self
            .discipline
            .take(reading, self.scale.at(reading.middle()));
        let before = self.now();
        let slope = Scale::slope(self.discipline.rate().hertz, self.discipline.slew());
        self.scale = self.scale.bent(self.host.tsc(), slope);
        assert_eq!(self.now(), before, "the clock is bent, not moved");
        outcome
    }

    fn run(&mut self, span_ns: u64) {
        let end = self.host.now_ns + span_ns;
        while self.host.now_ns < end {
            self.step();
        }
    }
}

#[test]
fn a_clock_that_boots_within_its_doubt_is_within_a_millisecond_after_a_minute() {
    for_each_seed(200, |seed| {
        for reference in [PM_TIMER, INTERVAL_TIMER, KVM_CLOCK] {
            let host = Host::new(seed, reference);
            let off_ppm = i64::try_from(seed % 1000).expect("small") - 500;
            let mut machine = Machine::boot(host, off_ppm, 500_000);
            let (began, shown) = (machine.host.now_ns, machine.now());
            machine.run(60 * SECOND);
            let (spent, counted) = (machine.host.now_ns - began, machine.now() - shown);
            let off_ns = spent.abs_diff(counted);
            assert!(off_ns < 1_000_000, "{off_ns} ns off of {spent} ns");
        }
    });
}

#[test]
fn a_clock_that_boots_twice_too_fast_runs_right_within_seconds() {
    for_each_seed(200, |seed| {
        let mut machine = Machine::boot(Host::new(seed, PM_TIMER), -500_000, 1000);
        machine.run(4 * SECOND);
        let (began, shown) = (machine.host.now_ns, machine.now());
        machine.run(60 * SECOND);
        let (spent, counted) = (machine.host.now_ns - began, machine.now() - shown);
        assert!(
            spent.abs_diff(counted) * 1000 < spent,
            "{counted} of {spent} ns"
        );
    });
}

#[test]
fn a_clock_follows_its_reference_for_a_day_of_pauses() {
    for_each_seed(20, |seed| {
        let mut machine = Machine::boot(Host::new(seed, PM_TIMER), 300, 500_000);
        let (began, shown) = (machine.host.now_ns, machine.now());
        let end = began + 86_400 * SECOND;
        while machine.host.now_ns < end {
            machine.step();
            if machine.host.random.once_in(100) {
                // SIGSTOP and SIGCONT: QEMU's counters run on.
                machine.host.now_ns += machine.host.random.below(20 * SECOND);
            }
        }
        let off_ns = (machine.host.now_ns - began).abs_diff(machine.now() - shown);
        assert!(off_ns < 10_000_000, "{off_ns} ns off after a day");
    });
}

/// The chip shows the host's time, late by `late_ns`.
fn chip(host: &Host, late_ns: u64) -> i64 {
    ((host.now_ns - late_ns) / SECOND) as i64
}

/// A machine whose wall clock follows a chip.
struct Watched {
    host: Host,
    late_ns: u64,
    lead: i64,
    /// What the wall clock shows beyond what the counters saw.
    offset: i64,
    watch: Watch,
    readings: u32,
}

impl Watched {
    fn boot(seed: u64) -> Self {
        let mut host = Host::new(seed, PM_TIMER);
        host.pause_max_ns = 20_000_000;
        host.now_ns = 1000 * SECOND + host.random.below(SECOND);
        let late_ns = host.random.below(SECOND);
        let lead = i64::try_from(host.random.below(2 * SECOND)).expect("small");
        Self {
            offset: host.now_ns as i64 + lead - host.ran_ns() as i64,
            host,
            late_ns,
            lead,
            watch: Watch::default(),
            readings: 0,
        }
    }

    fn wall(&self) -> i64 {
        self.host.ran_ns() as i64 + self.offset
    }

    fn stop(&mut self, span_ns: u64) {
        self.host.now_ns += span_ns;
        self.host.stood_ns += span_ns;
    }

    fn wait(&mut self) {
        let wall = self.wall();
        self.host.now_ns += self.watch.wait_ns(wall) + self.host.random.below(2_000_000);
    }

    fn read(&mut self) {
        let before = self.wall();
        self.host.step();
        let seconds = chip(&self.host, self.late_ns);
        self.host.step();
        let after = self.wall();
        self.offset += self.watch.take(before, seconds, after);
        self.readings += 1;
    }

    fn off_ns(&self) -> i64 {
        self.wall() - self.lead - self.host.now_ns as i64
    }
}

#[test]
fn the_wall_clock_follows_a_host_that_stops_the_machine_for_an_hour() {
    for_each_seed(100, |seed| {
        let mut machine = Watched::boot(seed);
        let end = machine.host.now_ns + 3600 * SECOND;
        let stops_end = end - 120 * SECOND;
        while machine.host.now_ns < end {
            machine.wait();
            let may_stop = machine.host.now_ns < stops_end && machine.readings > 40;
            if may_stop && machine.host.random.once_in(20) {
                let span_ns = machine.host.random.below(100 * SECOND);
                machine.stop(span_ns);
            }
            machine.read();
        }
        let off_ns = machine.off_ns();
        assert!(off_ns.abs() < 100_000_000, "{off_ns} ns off after an hour");
        let readings = machine.readings;
        assert!(readings < 1500, "{readings} readings in an hour");
    });
}

#[test]
fn a_stop_while_the_chip_is_learnt_is_followed_as_well_as_the_chip_was_known() {
    for_each_seed(300, |seed| {
        let mut machine = Watched::boot(seed);
        for _ in 0..1 + seed % 20 {
            machine.wait();
            machine.read();
        }
        machine.stop(7 * SECOND);
        let end = machine.host.now_ns + 90 * SECOND;
        while machine.host.now_ns < end {
            machine.wait();
            machine.read();
        }
        let off_ns = machine.off_ns();
        assert!(off_ns.abs() < 600_000_000, "{off_ns} ns off after a stop");
    });
}

#[test]
fn a_line_never_goes_back_for_a_cpu_whose_counter_is_a_little_behind() {
    for_each_seed(1000, |seed| {
        let mut random = Random::new(seed);
        let mut scale = Scale::starting(random.below(1 << 40), 2_000_000_000);
        let mut ticks = scale.base_ticks;
        let mut shown = 0;
        for _ in 0..100 {
            ticks += 1 + random.below(1 << 36);
            let behind = ticks - random.below(1000).min(ticks - scale.base_ticks);
            let now = scale.at(ticks);
            assert!(now >= shown, "{now} after {shown}");
            let slew = Speed::from_ppm(random.below(1000) as i64 - 500);
            scale = scale.bent(ticks, Scale::slope(2_000_000_000, slew));
            assert!(
                scale.at(behind).abs_diff(now) < 2000,
                "the line goes on before its point"
            );
            shown = now;
        }
    });
}
