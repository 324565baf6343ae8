//! Chance that can be had again.

/// A stream of numbers that its seed determines (xorshift64).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The stream of `seed`.
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// The next number below `limit`, which is of 48 bits at most.
    pub fn below<N: Number>(&mut self, limit: N) -> N {
        N::of_bits((self.bits() >> 16) % limit.bits())
    }

    /// True once in `of`.
    pub fn once_in<N: Number>(&mut self, of: N) -> bool {
        self.below(of).bits() == 0
    }
}

/// What a test counts in.
pub trait Number {
    /// As the generator's bits.
    fn bits(self) -> u64;
    /// Of bits that it has room for.
    fn of_bits(bits: u64) -> Self;
}

macro_rules! number {
    ($($kind:ty)*) => {$(
        impl Number for $kind {
            fn bits(self) -> u64 {
                self as u64
            }

            fn of_bits(bits: u64) -> Self {
                bits as Self
            }
        }
    )*};
}
number!(u8 u16 u32 u64 usize i32);

/// Calls `test` with `count` seeds, or with that of the environment's `SEED` only. The seed of a
/// test that fails is printed.
pub fn for_each_seed(count: u64, mut test: impl FnMut(u64, Random)) {
    let chosen = std::env::var("SEED")
        .ok()
        .and_then(|seed| seed.parse().ok());
    let seeds = chosen.map_or(1..=count, |seed| seed..=seed);
    for seed in seeds {
        let _printed = Printed(seed);
        test(seed, Random::new(seed));
    }
}

/// A seed that is printed if the test fails.
struct Printed(u64);

impl Drop for Printed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("replay with SEED={}", self.0);
        }
    }
}
