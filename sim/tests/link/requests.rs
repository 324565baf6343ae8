//! Random requests of tools; the fuzzer `linkctl` goes on from here.

use sim::lan::pester;
use sim::{Random, for_each_seed};

#[test]
fn random_requests_are_answered_and_those_refused_change_nothing() {
    for_each_seed(1000, |seed| {
        let mut random = Random::new(seed);
        let len = random.below(600) as usize;
        let script: Vec<u8> = (0..len).map(|_| random.bits() as u8).collect();
        pester(&script);
    });
}
