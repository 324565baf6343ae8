//! Unpredictable bytes: for programs (getrandom, /dev/urandom), for addresses, ports and
//! sequence numbers.
//!
//! ChaCha20 (RFC 8439) keyed once from the machine (`mach::random`), as in Linux since
//! 4.8. Nothing here blocks: the seed is there before the first program.
#![no_std]
#![forbid(unsafe_code)]

use mach::sync::Spin;
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

static GENERATOR: Spin<Option<ChaCha20Rng>> = Spin::new(None);

/// Fills `bytes`.
pub fn fill(bytes: &mut [u8]) {
    with_generator(|generator| generator.fill_bytes(bytes));
}

/// 64 bits.
pub fn next_u64() -> u64 {
    with_generator(RngCore::next_u64)
}

fn with_generator<R>(work: impl FnOnce(&mut ChaCha20Rng) -> R) -> R {
    let mut generator = GENERATOR.lock();
    work(generator.get_or_insert_with(|| ChaCha20Rng::from_seed(mach::random::seed())))
}
