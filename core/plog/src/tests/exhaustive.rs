//! All sequences of a few steps on a small ring, and of each all that a loss of power may leave.

use std::vec::Vec;

use models::Random;

use super::disk::SimDisk;
use super::shell::{Found, Model, Shell, opened};
use crate::Promise;

const STEPS: usize = 6;
/// More sectors than these are not tried in all ways.
const UNDECIDED_MAX: usize = 6;

/// Rebuilds the state that a sequence of steps leads to.
fn state(steps: &[usize]) -> Found<Shell> {
    let mut random = Random::new(1);
    let mut disk = SimDisk::new(512, 10);
    disk.tears = false;
    let log = crate::format(&mut disk, 3).expect("a disk that works");
    let mut shell = Shell::new(log, disk, Model::default(), 0);
    // So that entries pass the ring's end soon.
    for _ in 0..6 {
        let _ = shell.append(10, Promise::Durable);
        shell.settle(&mut random)?;
    }
    let cursor = shell.log.durable();
    shell.log.trim(cursor).expect("all is durable");
    shell.model.head = cursor.sequence();
    shell.log.anchor_soon();
    shell.settle(&mut random)?;
    for step in steps {
        apply(&mut shell, *step, &mut random)?;
    }
    Ok(shell)
}

fn apply(shell: &mut Shell, step: usize, random: &mut Random) -> Found {
    let pending = shell.disk.pending();
    match step {
        0 => drop(shell.append(10, Promise::Durable)),
        1 => drop(shell.append(600, Promise::Accepted)),
        2 if pending != 0 => shell.finish(0, random)?,
        3 if pending > 1 => shell.finish(pending - 1, random)?,
        4 => {
            let durable = shell.log.durable();
            shell.log.trim(durable).expect("it is durable");
            shell.model.head = durable.sequence();
            shell.log.anchor_soon();
        }
        5 => shell.settle(random)?,
        _ => {}
    }
    shell.send();
    Ok(())
}

/// Looks at all that a loss of power may leave, and goes on with it for a bit.
fn look(shell: &Shell) -> Found<usize> {
    let mut random = Random::new(9);
    let undecided = shell.disk.undecided();
    let ways = 1_usize << undecided.min(UNDECIDED_MAX);
    for way in 0..ways {
        let mut bit = 0;
        let disk = shell.disk.after_loss(&mut |below| {
            bit += 1;
            match bit > UNDECIDED_MAX {
                true => random.below(below),
                // The newest version or what is on the medium.
                false => (way >> (bit - 1) & 1) * (below - 1),
            }
        });
        let mut again = opened(disk, shell.model.clone(), shell.serial())?;
        let _ = again.append(10, Promise::Durable);
        again.send();
        let disk = again.disk.after_loss(&mut |below| random.below(below));
        opened(disk, again.model.clone(), again.serial())?;
    }
    Ok(2 * ways)
}

pub fn run_all(depth: usize) -> Found<usize> {
    let mut images = 0;
    for number in 0..STEPS.pow(depth as u32) {
        let steps: Vec<usize> = (0..depth)
            .map(|at| number / STEPS.pow(at as u32) % STEPS)
            .collect();
        let looked = state(&steps).and_then(|shell| look(&shell));
        images += looked.map_err(|why| std::format!("{why} after {steps:?}"))?;
    }
    Ok(images)
}

#[test]
fn all_short_sequences_survive_all_losses_of_power() {
    let depth = std::env::var("PLOG_DEPTH").ok();
    let depth = depth.and_then(|depth| depth.parse().ok()).unwrap_or(4);
    let images = run_all(depth).unwrap_or_else(|why| panic!("{why}"));
    std::println!("{images} images of all sequences of {depth}");
}
