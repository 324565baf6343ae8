//! Disks that lose, misdirect and tear writes and call them complete: what is read is right, or is
//! refused.

use models::{Random, for_each_seed};

use super::disk::SimDisk;
use super::shell::{Found, Model, Shell};
use crate::{OpenError, Promise};

/// One history; returns how often the disk was refused.
pub fn run(seed: u64) -> Found<usize> {
    let mut random = Random::new(seed);
    let mut disk = SimDisk::new(512, 10 + random.below(30u64));
    let log = crate::format(&mut disk, 8).expect("a disk that works");
    let mut shell = Shell::new(log, disk, Model::default(), 0);
    shell.promises_checked = false;
    shell.disk.lying = 60;
    for _ in 0..6 {
        for _ in 0..random.below(50) {
            match random.below(6) {
                0..=1 => drop(shell.append(random.below(900usize), Promise::Durable)),
                2 => shell.trim(&mut random)?,
                _ if shell.disk.pending() != 0 => {
                    let at = random.below(shell.disk.pending());
                    shell.finish(at, &mut random)?;
                }
                _ => {}
            }
            shell.send();
        }
        let mut disk = shell.disk.after_loss(&mut |below| random.below(below));
        let mut model = shell.model.clone();
        let log = match crate::open(&mut disk) {
            Ok(log) => log,
            Err(OpenError::Lost(_) | OpenError::NotALog) => return Ok(1),
            Err(why) => return Err(std::format!("{why:?}")),
        };
        if !model.take_of_liar(&log, &mut disk)? {
            return Ok(1);
        }
        shell = Shell::new(log, disk, model, shell.serial());
        shell.promises_checked = false;
    }
    Ok(0)
}

/// A log of some entries on a sound disk, nothing under way.
fn sound(random: &mut Random) -> Found<Shell> {
    let mut disk = SimDisk::new(512, 10 + random.below(30u64));
    let log = crate::format(&mut disk, 8).expect("a disk that works");
    let mut shell = Shell::new(log, disk, Model::default(), random.bits() >> 8);
    for _ in 0..2 + random.below(8) {
        let _ = shell.append(random.below(440usize), Promise::Durable);
        shell.settle(random)?;
        if random.once_in(4) {
            shell.trim(random)?;
            shell.log.anchor_soon();
            shell.settle(random)?;
        }
    }
    Ok(shell)
}

/// One bit of one anchor turns over while all is at rest: the other one does.
pub fn flipped(seed: u64) -> Found {
    let mut random = Random::new(seed);
    let mut shell = sound(&mut random)?;
    let disk = &mut shell.disk;
    let at = random.below(2) * 512 + random.below(100usize);
    disk.bytes[at] ^= 1 << random.below(8);
    let log = match crate::open(disk) {
        // The older anchor may be too old: what is behind its mark was written over.
        Err(OpenError::Lost(_)) => return Ok(()),
        opened => opened.map_err(|why| std::format!("not opened: {why:?}"))?,
    };
    let (head, end) = (log.head().sequence(), log.end().sequence());
    let is_right = end == shell.model.durable && head <= shell.model.head;
    match is_right {
        true => Ok(()),
        false => Err(std::format!("{head}..{end} after a flipped bit at {at}")),
    }
}

/// An entry that is not the last is damaged while all is at rest.
pub fn damaged(seed: u64) -> Found {
    let mut random = Random::new(seed);
    let mut shell = sound(&mut random)?;
    let (head, end) = (shell.log.head(), shell.log.end());
    let Some(live) = (end.sequence() - head.sequence()).checked_sub(1) else {
        return Ok(());
    };
    // Entries of one block each.
    let skipped = random.below(live.max(1));
    let (block, _) = shell.log.shape().block_at(head.position() + skipped);
    shell.disk.bytes[block as usize * 512 + random.below(64usize)] ^= 0x10;
    let is_last = skipped == live;
    let found = match crate::open(&mut shell.disk) {
        Err(OpenError::Lost(_)) => return Ok(()),
        Err(why) => return Err(std::format!("{why:?}")),
        Ok(log) => shell
            .model
            .clone()
            .take_of_liar(&log, &mut shell.disk)
            .map(|is_read| (is_read, log.end().sequence())),
    }?;
    match found {
        (false, _) => Ok(()),
        (true, seen) if is_last && seen + 1 == end.sequence() => Ok(()),
        (true, seen) => Err(std::format!("ends at {seen}, before {}", end.sequence())),
    }
}

#[test]
fn one_anchor_may_be_damaged_and_a_damaged_entry_is_refused() {
    for_each_seed(2000, |_, mut random| {
        let seed = random.bits();
        flipped(seed).unwrap_or_else(|why| panic!("{why}"));
        damaged(seed).unwrap_or_else(|why| panic!("{why}"));
    });
}

#[test]
fn what_a_lying_disk_has_is_right_or_is_refused() {
    let mut refused = 0;
    for_each_seed(3000, |_, mut random| {
        refused += run(random.bits()).unwrap_or_else(|why| panic!("{why}"));
    });
    std::println!("{refused} disks refused");
}
