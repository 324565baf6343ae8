//! Each planted bug is found by the histories in which the power fails.

use super::power::run_all;
use crate::planted::{Bug, with};

const BUGS: [Bug; 8] = [
    Bug::ChecksumUnchecked,
    Bug::HeaderInPlace,
    Bug::FlushSkipped,
    Bug::OlderTaken,
    Bug::NoSecondCopy,
    Bug::CopyUnbound,
    Bug::NotCleaned,
    Bug::FailedChangeKept,
];

#[test]
fn every_planted_bug_is_found() {
    for bug in BUGS {
        let is_found = with(bug, || (1..=12).any(|seed| run_all(seed).is_err()));
        assert!(is_found, "{bug:?} is not found");
    }
}
