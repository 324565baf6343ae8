//! A program that does something at random times, on a machine that is started again and again.

use base::{Duration, Instant};
use ext4::Error;

use super::machine::Machine;
use super::oracle::Oracle;
use super::{Faults, Tally, rig};
use crate::files::scene::Scene;
use crate::files::sequence::recover;
use crate::image;
use crate::random::Random;

/// One image in so many goes to e2fsck.
const FSCK_EVERY: u64 = 10;
/// Operations that a message shows.
const TOLD_MAX: usize = 25;

/// A program, its machine and what is known of it.
pub struct Life {
    /// Chance.
    pub random: Random,
    /// None while nothing is mounted.
    pub machine: Option<Machine>,
    /// What may be on the disk.
    pub oracle: Oracle,
    /// Files without names.
    pub held: Vec<u32>,
    /// What happened.
    pub tally: Tally,
    /// The last operations.
    told: Vec<String>,
    /// The faults until the last operation.
    seen: rig::Seen,
    /// Operations until a stopped volume is started anew.
    patience: u32,
}

/// Lives for so many hours of simulated time.
pub fn live(scene: &Scene, seed: u64, hours: u64, faults: Faults) -> Result<Tally, String> {
    rig::install(&scene.medium().flatten(), faults, seed);
    let tree = image::judge(scene.medium())?;
    let mut life = Life {
        random: Random::new(seed),
        machine: Some(rig::with_calm(Machine::start)?),
        oracle: Oracle::new(&tree),
        held: Vec::new(),
        tally: Tally::default(),
        told: Vec::new(),
        seen: rig::Seen::default(),
        patience: 0,
    };
    let end = Instant::from_millis(hours * 3600 * 1000);
    while rig::with(|rig| rig.now()) < end {
        let lived = life.step();
        lived.map_err(|error| {
            let hour = rig::with(|rig| rig.now()).as_millis() as f64 / 3_600_000.0;
            let last = life.told.join("\n  ");
            format!("seed {seed}, hour {hour:.3}, after\n  {last}\n{error}")
        })?;
    }
    life.tally.seen = rig::with(|rig| rig.seen);
    Ok(life.tally)
}

impl Life {
    /// The machine, which is mounted between operations.
    pub fn machine(&mut self) -> &mut Machine {
        self.machine
            .as_mut()
            .expect("it is mounted between operations")
    }

    fn step(&mut self) -> Result<(), String> {
        let pause_ms = match self.random.below(10) {
            0..=2 => 0,
            3..=8 => self.random.bits() % 2500,
            _ => self.random.bits() % 20_000,
        };
        let next = rig::with(|rig| rig.now()) + Duration::from_millis(pause_ms);
        self.machine().wait_until(next);
        self.note_brought();
        let now = rig::with(|rig| rig.now()).as_millis();
        if self.told.len() == TOLD_MAX {
            self.told.remove(0);
        }
        self.told.push(format!("{now} ms:"));
        self.tally.operations += 1;
        let done = self.operate()?;
        let seen = rig::with(|rig| rig.seen);
        if seen.failed != self.seen.failed {
            self.tell(&format!("(failed: {:?})", seen.failed));
        }
        self.seen = seen;
        self.tell(&format!("{done:?}"));
        self.tally.refused += u64::from(done.is_err());
        let failure = self.machine().volume.failure();
        let found = [done.err(), failure];
        if found
            .iter()
            .any(|found| matches!(found, Some(Error::Corrupt(_))))
        {
            return Err(format!("{found:?}: nothing has damaged the image"));
        }
        self.end_if_due()
    }

    /// What a message says of the operation under way.
    pub fn tell(&mut self, what: &str) {
        if let Some(last) = self.told.last_mut() {
            last.push(' ');
            last.push_str(what);
        }
    }

    /// The oracle hears of what was brought down.
    pub fn note_brought(&mut self) {
        for brought in std::mem::take(&mut self.machine().brought) {
            self.oracle.brought(&brought);
        }
    }

    /// The machine is started anew: because it has no power, because its volume has stopped, or just so.
    fn end_if_due(&mut self) -> Result<(), String> {
        let has_stopped = self.machine().volume.failure().is_some();
        if has_stopped && self.patience == 0 {
            self.tally.stopped += 1;
            self.patience = 1 + self.random.below(20) as u32;
        }
        if rig::with(|rig| rig.is_off) || has_stopped && self.patience == 1 {
            return self.restart();
        }
        self.patience = self.patience.saturating_sub(1);
        match self.random.below(4000) {
            0 => self.unmount(),
            1 => self.restart(),
            _ => Ok(()),
        }
    }

    /// A power cut, recovery, and what it finds.
    fn restart(&mut self) -> Result<(), String> {
        self.tell("- the power is cut");
        rig::with(|rig| rig.lose_power());
        self.mount()
    }

    /// umount(2), which e2fsck judges.
    fn unmount(&mut self) -> Result<(), String> {
        self.tell("- unmounted");
        for inode in std::mem::take(&mut self.held) {
            self.machine().evict(inode);
        }
        let is_whole = self.machine().sync_all();
        self.note_brought();
        if is_whole {
            self.oracle.synced_all();
        }
        let machine = self.machine.take();
        match machine.map(|machine| machine.volume.unmount()) {
            Some(Ok(())) if is_whole => {
                self.tally.unmounts += 1;
                crate::e2fsck(&rig::with(|rig| rig.medium()))?;
            }
            _ => rig::with(|rig| rig.lose_power()),
        }
        self.mount()
    }

    /// Mounts, whatever faults there are meanwhile.
    fn mount(&mut self) -> Result<(), String> {
        loop {
            let (medium, _) = recover(rig::with(|rig| rig.medium()))?;
            let tree = image::judge(&medium)?;
            self.tally.images += 1;
            if self.tally.images.is_multiple_of(FSCK_EVERY) {
                self.tally.checked += 1;
                crate::e2fsck(&medium)?;
            }
            self.oracle.check(&tree)?;
            match Machine::start() {
                Ok(machine) => {
                    self.machine = Some(machine);
                    self.oracle = Oracle::new(&tree);
                    self.held.clear();
                    self.patience = 0;
                    return Ok(());
                }
                Err(error) if error.contains("Device") => {
                    self.tally.mounts_failed += 1;
                    rig::with(|rig| rig.lose_power());
                }
                Err(error) => return Err(format!("a mount: {error}")),
            }
        }
    }
}
