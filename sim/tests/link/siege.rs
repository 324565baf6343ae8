//! Random scripts of frames and control operations; the fuzzer goes on from here.

use sim::lan::besiege;
use sim::{Random, for_each_seed};

#[test]
fn random_frames_and_operations_break_nothing() {
    for_each_seed(3000, |seed| {
        let mut random = Random::new(seed);
        let len = random.below(1500) as usize;
        let script: Vec<u8> = (0..len).map(|_| random.bits() as u8).collect();
        besiege(&script);
    });
}
