//! Random histories with losses of power.

use std::vec::Vec;

use models::{Random, for_each_seed};
use plog::Promise;

use super::world::{Outcome, World};

const NAMES: [&[u8]; 4] = [b"a", b"bb", b"appendonly.aof.1.incr.aof", b"d"];

fn some_bytes(random: &mut Random, below: usize) -> Vec<u8> {
    let first = random.bits();
    (0..1 + random.below(below as u64))
        .map(|at| (first + at) as u8)
        .collect()
}

/// One history.
pub fn run(seed: u64) -> Outcome {
    let mut random = Random::new(seed);
    let mut world = World::new(512, 90 + random.below(80u64));
    for _ in 0..250 {
        let name = NAMES[random.below(NAMES.len())];
        step(&mut world, name, &mut random)?;
    }
    world.check()?;
    world.lose_power(&mut random)
}

fn step(world: &mut World, name: &[u8], random: &mut Random) -> Outcome {
    let size = world.now.get(name).map_or(0, Vec::len);
    match random.below(24) {
        0 => drop(world.create(name, random)),
        1..=6 => {
            let bytes = some_bytes(random, 300);
            world.write(name, size, &bytes, random);
        }
        7 => {
            let bytes = some_bytes(random, 3000);
            world.write(name, size, &bytes, random);
        }
        8 | 9 => {
            let bytes = some_bytes(random, 200);
            world.write(name, random.below(size + 100), &bytes, random);
        }
        10 if random.once_in(3) => world.set_size(name, random.below(size + 50), random),
        11 if random.once_in(3) => world.rename(name, NAMES[random.below(NAMES.len())], random),
        12 if random.once_in(3) => drop(world.remove(name, random)),
        13 => drop(world.sync(random)),
        14 => drop(world.seal(Promise::Accepted, random)),
        15..=17 => drop(world.compact(random)),
        18 if random.once_in(6) => return world.lose_power(random),
        19 if random.once_in(4) => return world.check(),
        _ => world.run(random.below(8), random),
    }
    Ok(())
}

#[test]
fn files_are_after_a_loss_of_power_what_they_were_after_an_operation() {
    let histories = std::env::var("LOGFILE_HISTORIES").ok();
    let count = histories
        .and_then(|count| count.parse().ok())
        .unwrap_or(400);
    for_each_seed(count, |seed, _| run(seed).expect("the files are right"));
}
