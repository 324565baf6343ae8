//! Seeded randomness for tests.

/// A small generator whose seed is printed when a test fails.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

/// Runs `test` for many seeds, or for the one in the environment's `SEED`.
pub fn for_each_seed(test: impl Fn(&mut Random) + std::panic::RefUnwindSafe) {
    let one = std::env::var("SEED")
        .ok()
        .and_then(|seed| seed.parse().ok());
    let seeds = one.map_or(0..400, |seed: u64| seed..seed + 1);
    for seed in seeds {
        eprintln!("SEED={seed}");
        test(&mut Random(seed));
    }
}
