//! Each planted bug is found by the histories.

use planted::Planted;

use super::histories;

const BUGS: [&str; 9] = [
    "what is overwritten stays",
    "an entry is trimmed before what replaced it is durable",
    "a truncation is not written",
    "that a file was removed is not written",
    "a file that was renamed keeps its old name",
    "numbers of files are used again",
    "the name in an old entry is not kept",
    "a name that is moved says an old length",
    "bytes in an old entry are not kept",
];

#[test]
fn every_planted_bug_is_found() {
    let mut missed = std::vec::Vec::new();
    for bug in BUGS {
        let planted = Planted::new(bug);
        let found = (1..=2000).find(|seed| {
            let run = std::panic::catch_unwind(|| histories::run(*seed));
            !matches!(run, Ok(Ok(())))
        });
        match found {
            Some(seed) => std::println!("{bug}: found by seed {seed}"),
            None => missed.push((bug, planted.reached())),
        }
    }
    assert!(missed.is_empty(), "not found: {missed:?}");
}
