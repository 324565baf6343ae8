//! A host survives a peer that sends anything.

use sim::{Random, besiege, for_each_seed};

fn sieges() -> u64 {
    std::env::var("SIM_SIEGES")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(20_000)
}

#[test]
fn arbitrary_frames_and_calls_neither_panic_nor_leak() {
    for_each_seed(sieges(), |seed| {
        let mut random = Random::new(seed);
        let len = random.below(3000) as usize;
        let program: Vec<u8> = (0..len).map(|_| random.bits() as u8).collect();
        besiege(&program);
    });
}
