//! Random requests of tools; the fuzzer `linkctl` goes on from here.

use sim::lan::fuzz_requests;
use sim::{Random, for_each_seed};

#[test]
fn random_requests_are_answered_and_those_refused_change_nothing() {
    for_each_seed(1000, |seed| {
        let mut random = Random::new(seed);
        let len = random.below(600) as usize;
        let script: Vec<u8> = (0..len).map(|_| random.bits() as u8).collect();
        fuzz_requests(&script);
    });
}

/// Found by the fuzzer: a link that asked for rings of its own, and had them, lost them when the
/// card took no address at that moment.
#[test]
fn a_link_keeps_its_rings_when_the_card_refuses_others() {
    fuzz_requests(&[
        42, 42, 42, 115, 116, 117, 98, 48, 98, 42, 42, 42, 42, 200, 18, 0, 119, 58, 101, 98, 42, 0,
        42, 42, 119, 4, 171, 170, 170, 170, 170, 170, 170, 10, 42, 0, 42, 42, 42, 42, 50, 68, 132,
        9, 132, 58, 101, 98, 42, 0,
    ]);
}
