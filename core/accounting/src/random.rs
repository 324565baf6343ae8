//! Numbers for tests, the same for the same seed.

/// A generator of Knuth's (MMIX), so that a failure can be repeated; 31 bits.
pub fn next(seed: &mut u64) -> u64 {
    *seed = seed
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    *seed >> 33
}
