//! Each planted bug is found by the histories.

use super::{exhaustive, histories, lies};
use crate::planted::{Bug, with};

const BUGS: [Bug; 16] = [
    Bug::ChecksumUnchecked,
    Bug::HeaderUnchecked,
    Bug::AnchorUnchecked,
    Bug::IdUnbound,
    Bug::PositionUnbound,
    Bug::EpochUnbound,
    Bug::EpochKept,
    Bug::DurableAtAccept,
    Bug::FlushCoversLater,
    Bug::ReusedEarly,
    Bug::AnchorNotFlushed,
    Bug::AnchorInPlace,
    Bug::MarkAhead,
    Bug::OpenNotFlushed,
    Bug::LossIgnored,
    Bug::FailureIgnored,
];

/// The seed by which it is found.
fn found_at() -> Option<u64> {
    let is_found = |seed: &u64| {
        histories::run(*seed).is_err()
            || lies::run(*seed).is_err()
            || lies::flipped(*seed).is_err()
            || lies::damaged(*seed).is_err()
    };
    let by_seed = (1..=3000).find(is_found);
    by_seed.or_else(|| exhaustive::run_all(4).err().map(|_| 0))
}

#[test]
fn every_planted_bug_is_found() {
    let mut missed = std::vec::Vec::new();
    for bug in BUGS {
        match with(bug, found_at) {
            Some(seed) => std::println!("{bug:?}: found by seed {seed}"),
            None => missed.push(bug),
        }
    }
    assert!(missed.is_empty(), "not found: {missed:?}");
}
