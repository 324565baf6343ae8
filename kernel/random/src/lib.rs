//! Unpredictable bytes: for programs (getrandom, /dev/urandom), for addresses, ports and
//! sequence numbers.
//!
//! ChaCha20 (RFC 8439) keyed once on each CPU from the machine (`mach::random`), as in Linux
//! since 4.8. No CPU waits for another's. Nothing here blocks: the seed is there before the
//! first program.
//!
//! Machines that go on from one snapshot would all draw the same. So each is told a seed of its own by the host
//! ([`renew`]), and every CPU keys its generator anew before it draws again.
//! Until it has heard that, a clone draws what the others draw.
#![no_std]
#![forbid(unsafe_code)]

use core::cell::RefCell;
use core::sync::atomic::{AtomicU64, Ordering};

use mach::cpu::PerCpu;
use mach::sync::Spin;
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

/// Each CPU's own: nobody who draws waits for another.
static GENERATORS: PerCpu<RefCell<Generator>> = PerCpu::new(|| RefCell::new(Generator::new()));
/// How often the machine was renewed.
static RENEWALS: AtomicU64 = AtomicU64::new(0);
/// What the host said last; each CPU draws another part of its key from it. A leaf lock.
static OF_HOST: Spin<Option<ChaCha20Rng>> = Spin::new(None);

struct Generator {
    random: ChaCha20Rng,
    /// [`RENEWALS`] when it was keyed.
    renewals: u64,
}

impl Generator {
    fn new() -> Self {
        let renewals = RENEWALS.load(Ordering::Acquire);
        let mut key = mach::random::seed();
        if let Some(of_host) = OF_HOST.lock().as_mut() {
            let mut more = [0; 32];
            of_host.fill_bytes(&mut more);
            key.iter_mut()
                .zip(more)
                .for_each(|(byte, more)| *byte ^= more);
        }
        Self {
            random: ChaCha20Rng::from_seed(key),
            renewals,
        }
    }

    /// The generator, keyed since the machine was renewed.
    fn current(&mut self) -> &mut ChaCha20Rng {
        if self.renewals != RENEWALS.load(Ordering::Acquire) {
            *self = Self::new();
        }
        &mut self.random
    }
}

/// Fills `bytes`.
pub fn fill(bytes: &mut [u8]) {
    GENERATORS.get().borrow_mut().current().fill_bytes(bytes);
}

/// 64 bits.
pub fn next_u64() -> u64 {
    GENERATORS.get().borrow_mut().current().next_u64()
}

/// From now on all that is drawn depends on `seed` too, which nobody else knows.
pub fn renew(seed: [u8; 32]) {
    *OF_HOST.lock() = Some(ChaCha20Rng::from_seed(seed));
    RENEWALS.fetch_add(1, Ordering::Release);
}
