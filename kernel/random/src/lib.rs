//! Unpredictable bytes: for programs (getrandom, /dev/urandom), for addresses, ports and
//! sequence numbers.
//!
//! ChaCha20 (RFC 8439) keyed once on each CPU from the machine (`mach::random`), as in Linux
//! since 4.8. No CPU waits for another's. Nothing here blocks: the seed is there before the
//! first program.
#![no_std]
#![forbid(unsafe_code)]

use core::cell::RefCell;

use mach::cpu::PerCpu;
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

/// Each CPU's own: nobody who draws waits for another.
static GENERATORS: PerCpu<RefCell<ChaCha20Rng>> =
    PerCpu::new(|| RefCell::new(ChaCha20Rng::from_seed(mach::random::seed())));

/// Fills `bytes`.
pub fn fill(bytes: &mut [u8]) {
    GENERATORS.get().borrow_mut().fill_bytes(bytes);
}

/// 64 bits.
pub fn next_u64() -> u64 {
    GENERATORS.get().borrow_mut().next_u64()
}
