//! A host survives a peer that sends anything.

use sim::{Random, besiege, besiege_v6, for_each_seed};

fn sieges() -> u64 {
    std::env::var("SIM_SIEGES")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(20_000)
}

#[test]
fn arbitrary_frames_and_calls_neither_panic_nor_leak() {
    for_each_seed(sieges(), |seed| besiege(&program(seed)));
}

#[test]
fn an_arbitrary_ipv6_link_can_neither_panic_a_host_nor_fill_it() {
    for_each_seed(sieges() / 4, |seed| besiege_v6(&program(seed)));
}

fn program(seed: u64) -> Vec<u8> {
    let mut random = Random::new(seed);
    let len = random.below(3000) as usize;
    (0..len).map(|_| random.bits() as u8).collect()
}
