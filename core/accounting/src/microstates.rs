//! Where a thread's time goes: eight microstates, as in illumos (proc(4), `prstat -m`).
//!
//! The problem: a thread that is slow either works, waits for something, or waits for a CPU.
//! Which of these tells where to look on. The answer must be there for every thread, all
//! the time, and cost next to nothing.
//!
//! The idea: the clock is read when a thread gets or leaves a CPU, and when it is woken.
//! So its life is cut into [`Phase`]s without gaps. What it did while it had a CPU is told apart by
//! samples ([`Split`]), which read no clock.
//!
//! Invariant: each nanosecond from the start to a reading is in exactly one microstate, so
//! that they add up to the thread's age; none ever shrinks. For a CPU whose clock is behind it
//! is as late as it was for the last one.
//!
//! Not here: who changes the phase and who may at that moment (`kernel/sched`).

use crate::{MODES, Mode, Sampled, Split};

/// What a thread does, as far as the clock is read for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// It has a CPU.
    Running,
    /// It waits for a page of instructions.
    TextFault,
    /// It waits for any other page.
    DataFault,
    /// It waits for another thread of its program, by a futex.
    Lock,
    /// It waits for anything else.
    Sleep,
    /// It waits for a CPU.
    Latency,
}

const PHASES: usize = 6;

/// How many microstates there are: USR SYS TRP TFL DFL LCK SLP LAT.
pub const MICROSTATES: usize = 8;

/// What a thread has done so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reading {
    /// Nanoseconds in USR, SYS, TRP, TFL, DFL, LCK, SLP and LAT.
    pub spent_ns: [u64; MICROSTATES],
    /// Its age in nanoseconds: the sum of the former.
    pub age_ns: u64,
}

/// The life of one thread.
#[derive(Clone, Debug)]
pub struct Microstates {
    phase: Phase,
    born_ns: u64,
    /// When the phase began.
    since_ns: u64,
    /// The latest moment that somebody has named.
    seen_ns: u64,
    spent_ns: [u64; PHASES],
    samples: [u64; MODES],
    split: Split,
}

impl Microstates {
    /// A thread that waits for its first CPU from `now_ns` on.
    pub const fn new(now_ns: u64) -> Self {
        Self {
            phase: Phase::Latency,
            born_ns: now_ns,
            since_ns: now_ns,
            seen_ns: now_ns,
            spent_ns: [0; PHASES],
            samples: [0; MODES],
            split: Split::new(),
        }
    }

    /// It is in `phase` from `now_ns` on; returns how long it was in the one before.
    pub fn change(&mut self, phase: Phase, now_ns: u64) -> u64 {
        let passed_ns = self.passed_ns(now_ns);
        self.spent_ns[self.phase as usize] += passed_ns;
        self.since_ns += passed_ns;
        self.seen_ns = self.since_ns;
        self.phase = phase;
        passed_ns
    }

    /// `samples` found its CPU in `mode`.
    pub fn count(&mut self, mode: Mode, samples: u64) {
        self.samples[mode as usize] += samples;
    }

    /// How long it has been in its phase, in nanoseconds.
    pub fn passed_ns(&self, now_ns: u64) -> u64 {
        now_ns.max(self.seen_ns) - self.since_ns
    }

    /// What it has used of CPUs up to `now_ns`.
    pub fn sampled(&self, now_ns: u64) -> Sampled {
        Sampled {
            run_ns: self.spent_ns(now_ns)[Phase::Running as usize],
            samples: self.samples,
        }
    }

    /// The same by [`Mode`], in nanoseconds.
    pub fn modes_ns(&mut self, now_ns: u64) -> [u64; MODES] {
        self.seen_ns = self.seen_ns.max(now_ns);
        self.split.divide(self.sampled(now_ns))
    }

    /// Where its time has gone up to `now_ns`.
    pub fn read(&mut self, now_ns: u64) -> Reading {
        let [user, system, trap, text, data] = self.modes_ns(now_ns);
        let [_, text_wait, data_wait, lock, sleep, latency] = self.spent_ns(now_ns);
        let (text, data) = (text + text_wait, data + data_wait);
        Reading {
            spent_ns: [user, system, trap, text, data, lock, sleep, latency],
            age_ns: self.seen_ns - self.born_ns,
        }
    }

    fn spent_ns(&self, now_ns: u64) -> [u64; PHASES] {
        let mut spent_ns = self.spent_ns;
        spent_ns[self.phase as usize] += self.passed_ns(now_ns);
        spent_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::next;

    const ALL: [Phase; PHASES] = [
        Phase::Running,
        Phase::TextFault,
        Phase::DataFault,
        Phase::Lock,
        Phase::Sleep,
        Phase::Latency,
    ];

    #[test]
    fn a_life_is_told_by_what_it_was_spent_with() {
        let mut life = Microstates::new(1000);
        life.change(Phase::Running, 1001);
        life.count(Mode::User, 3);
        life.count(Mode::DataFault, 1);
        life.change(Phase::DataFault, 1101);
        life.change(Phase::Running, 1111);
        assert_eq!(life.change(Phase::Lock, 1211), 100);
        life.change(Phase::Sleep, 1311);
        life.change(Phase::Latency, 1411);
        let reading = life.read(1421);
        assert_eq!(reading.spent_ns, [150, 0, 0, 0, 60, 100, 100, 11]);
        assert_eq!(reading.age_ns, 421);
    }

    #[test]
    fn a_phase_that_is_not_over_counts_up_to_the_reading() {
        let mut life = Microstates::new(0);
        assert_eq!(life.read(5).spent_ns, [0, 0, 0, 0, 0, 0, 0, 5]);
        life.change(Phase::Sleep, 5);
        assert_eq!(life.read(9).spent_ns, [0, 0, 0, 0, 0, 0, 4, 5]);
    }

    #[test]
    fn every_nanosecond_is_in_one_state_and_none_is_taken_back() {
        for start in 0..200 {
            let mut seed = start;
            let mut now = next(&mut seed);
            let born = now;
            let mut life = Microstates::new(now);
            let mut before = [0; MICROSTATES];
            for _ in 0..200 {
                now += next(&mut seed) % 1_000_000;
                let draw = next(&mut seed) as usize;
                match draw % 4 {
                    0 => life.count(Mode::System, 1),
                    1 => life.count(Mode::TextFault, 1),
                    _ => {
                        // The clock of the CPU that does this may be behind.
                        let behind = next(&mut seed) % 1000;
                        life.change(ALL[draw / 4 % PHASES], now.saturating_sub(behind));
                    }
                }
                let reading = life.read(now);
                let sum: u64 = reading.spent_ns.iter().sum();
                assert_eq!(
                    (sum, reading.age_ns),
                    (now - born, now - born),
                    "seed {start}"
                );
                let shrinks = reading
                    .spent_ns
                    .iter()
                    .zip(before)
                    .any(|(now, old)| *now < old);
                assert!(!shrinks, "seed {start}");
                before = reading.spent_ns;
            }
        }
    }
}
