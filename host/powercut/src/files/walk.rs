//! Long random sequences: the log goes round and round.

use super::operation::{Action, OPERATIONS, Operation, operation};
use super::scene::Scene;
use super::sequence::{Effort, Tally, try_cuts};
use crate::random::Random;

/// Operations of a walk: more than the log has room for.
const STEPS: usize = 2000;

/// A walk of this seed, cut at the events that chance has.
pub fn walk(scene: &Scene, seed: u64, tally: &mut Tally) -> Result<(), String> {
    let mut random = Random::new(seed);
    let operations: Vec<Operation> = (0..STEPS)
        .map(|_| match random.once_in(3) {
            true => Operation {
                action: Action::Fsync,
                place: random.below(2),
            },
            false => operation(random.below(OPERATIONS)),
        })
        .collect();
    let effort = Effort {
        torn: 1,
        again: 2,
        rotten: 1,
        fsck_every: 0,
        cuts: 400,
    };
    let walked = try_cuts(scene, &operations, &effort, seed, tally);
    walked.map_err(|error| format!("the walk of seed {seed}: {error}"))
}
