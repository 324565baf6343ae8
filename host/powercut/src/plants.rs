//! Does the harness find what is wrong? Bugs are planted (crate `planted`), one at a time.

use std::panic::{AssertUnwindSafe, catch_unwind};

use planted::Planted;

use crate::day::{self, Faults};
use crate::files::scene::Scene;
use crate::files::sequence::{Effort, Tally, all, try_cuts};
use crate::files::walk::walk;
use crate::requests;

/// The sentences of all bugs in `core/ext4` and `core/block`.
pub const BUGS: [&str; 30] = [
    "a commit block does not wait for its transaction",
    "a commit block is not forced",
    "revoked blocks are not logged",
    "the log overtakes its own tail",
    "a checkpoint leaves out its last blocks",
    "the tail moves before blocks are in their places",
    "an operation that failed is not undone",
    "sums of copies are not looked at",
    "recovery empties the log before its blocks are in their places",
    "a transaction without its commit block is replayed",
    "an old transaction is taken for a new one",
    "a transaction lacks the superblock",
    "blocks are in their places before they are in the log",
    "fsync does not flush what is written in place",
    "fsync returns at once",
    "fdatasync forgets a new size",
    "freed blocks are used before the commit",
    "a file without names is no orphan",
    "a rename is two transactions",
    "orphans stay after a mount",
    "a size is committed before its data",
    "the rest of a file's last block is not zeroed",
    "a flush that failed is forgotten",
    "a forced write ends without its flush",
    "the flag that forces a write is dropped",
    "what was sent before a reset is not sent again",
    "a flush covers what was written after it was sent",
    "a flush that failed condemns nothing",
    "a long request loses its last commands",
    "a flush is taken for done where there is a cache",
];

/// Hours of simulated time, each with a seed of its own.
const HOURS: u64 = 48;

/// What became of a planted bug.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hunt {
    /// What found it, and the first wrong image.
    pub found: Option<(&'static str, String)>,
    /// Images until then.
    pub images: u64,
    /// How often the bug's place was passed.
    pub reached: u64,
}

/// What is looked at, by increasing effort.
pub const STAGES: [&str; 5] = [
    "requests",
    "two operations",
    "a long walk",
    "hours with faults",
    "three operations",
];

/// Plants a bug and looks for it.
pub fn hunt(bug: &'static str, scenes: &[Scene]) -> Hunt {
    let planted = Planted::new(bug);
    let mut tally = Tally::default();
    let mut found = None;
    for stage in STAGES {
        let tried = catch_unwind(AssertUnwindSafe(|| look(stage, scenes, &mut tally)));
        let wrong = match tried {
            Ok(Ok(())) => continue,
            Ok(Err(error)) => error,
            Err(_) => "a panic".into(),
        };
        found = Some((stage, wrong));
        break;
    }
    Hunt {
        found,
        images: tally.images,
        reached: planted.reached(),
    }
}

/// Everything that a stage looks at; an error is what it found.
pub fn look(stage: &str, scenes: &[Scene], tally: &mut Tally) -> Result<(), String> {
    let effort = Effort {
        torn: 2,
        again: 1,
        rotten: 1,
        fsck_every: 0,
        cuts: usize::MAX,
    };
    match stage {
        "requests" => (0..300).try_for_each(|seed| {
            tally.images += 1;
            requests::history(seed)
        }),
        "a long walk" => scenes
            .iter()
            .try_for_each(|scene| (0..6).try_for_each(|seed| walk(scene, seed, tally))),
        "hours with faults" => (0..HOURS).try_for_each(|seed| {
            let lived = day::live(&scenes[0], seed, 1, Faults::SOME)?;
            tally.images += lived.images;
            Ok(())
        }),
        _ => {
            let longest = if stage == "two operations" { 2 } else { 3 };
            scenes.iter().try_for_each(|scene| {
                let sequences = all(longest, &scene.files);
                let mut numbered = sequences.iter().zip(0..);
                numbered.try_for_each(|(operations, seed)| {
                    try_cuts(scene, operations, &effort, seed, tally)
                })
            })
        }
    }
}
