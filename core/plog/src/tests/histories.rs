//! Random histories: the power fails at any moment, also while the log is opened, and commands fail.

use std::println;
use std::vec::Vec;

use models::{Random, for_each_seed};

use super::disk::SimDisk;
use super::shell::{Found, Model, Shell, opened};
use crate::Promise;

/// Images that are looked at of each moment at which the power fails.
const IMAGES: usize = 4;

/// A disk on which another log was, with the same numbers and places.
fn used_disk(random: &mut Random) -> Found<SimDisk> {
    let block_bytes = [512, 512, 1024, 4096][random.below(4usize)];
    let mut disk = SimDisk::new(block_bytes, 10 + random.below(30u64));
    let log = crate::format(&mut disk, 7).expect("a disk that works");
    let mut shell = Shell::new(log, disk, Model::default(), 1 << 40);
    for _ in 0..random.below(12) {
        let _ = shell.append(random.below(700usize), Promise::Durable);
        shell.settle(random)?;
    }
    Ok(shell.disk)
}

fn length(shell: &Shell, random: &mut Random) -> usize {
    let max = shell.log.shape().entry_bytes_max();
    match random.below(8) {
        0 => random.below(max + 1),
        1 => max,
        _ => random.below(448usize.min(max)),
    }
}

fn step(shell: &mut Shell, random: &mut Random) -> Found {
    match random.below(16) {
        0..=5 => {
            let promise = match random.once_in(3) {
                true => Promise::Accepted,
                false => Promise::Durable,
            };
            let _ = shell.append(length(shell, random), promise);
        }
        6 if random.once_in(2) => shell.trim(random)?,
        7 if random.once_in(4) => shell.log.anchor_soon(),
        8 if random.once_in(4) => shell.settle(random)?,
        _ if shell.disk.pending() != 0 => {
            let at = random.below(shell.disk.pending());
            shell.finish(at, random)?;
        }
        _ => {}
    }
    shell.send();
    Ok(())
}

/// A machine, until it goes down.
fn session(shell: &mut Shell, random: &mut Random) -> Found {
    if random.once_in(2) {
        shell.log.force_lone_writes();
    }
    for _ in 0..random.below(60) {
        step(shell, random)?;
    }
    Ok(())
}

/// Opens it up to twice while it stops working, then for good.
fn reopened(mut disk: SimDisk, shell: &Shell, random: &mut Random) -> Found<Shell> {
    for _ in 0..random.below(3) {
        disk.works_for = Some(random.below(3));
        let _ = crate::open(&mut disk);
        disk = match random.once_in(3) {
            true => disk.after_stop(random),
            false => disk.after_loss(&mut |below| random.below(below)),
        };
    }
    opened(disk, shell.model.clone(), shell.serial())
}

/// One history; returns how many images were looked at.
pub fn run(seed: u64) -> Found<usize> {
    let mut random = Random::new(seed);
    let mut disk = used_disk(&mut random)?;
    let log = crate::format(&mut disk, 8).expect("a disk that works");
    let mut shell = Shell::new(log, disk, Model::default(), 0);
    let mut images = 0;
    for _ in 0..6 {
        shell.disk.failing = match random.once_in(4) {
            true => 20,
            false => 0,
        };
        session(&mut shell, &mut random)?;
        let mut survivors = Vec::new();
        for _ in 0..IMAGES {
            let disk = match random.once_in(6) {
                true => shell.disk.after_stop(&mut random),
                false => shell.disk.after_loss(&mut |below| random.below(below)),
            };
            survivors.push(reopened(disk, &shell, &mut random)?);
        }
        images += IMAGES;
        shell = survivors.swap_remove(random.below(IMAGES));
    }
    Ok(images)
}

#[test]
fn what_is_durable_is_there_and_nothing_else_wherever_the_power_fails() {
    let count = std::env::var("PLOG_HISTORIES").ok();
    let count = count.and_then(|count| count.parse().ok()).unwrap_or(400);
    let mut images = 0;
    for_each_seed(count, |_, mut random| {
        images += run(random.bits()).unwrap_or_else(|why| panic!("{why}"));
    });
    println!("{images} images of random histories");
}
