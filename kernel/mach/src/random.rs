//! Entropy: what the hardware offers, mixed with what the clock's jitter gives.

use core::arch::asm;

use crate::sync::Spin;

/// What the machine gathered before it had a generator.
static POOL: Spin<[u64; 4]> = Spin::new([
    0x9e37_79b9_7f4a_7c15,
    0xbf58_476d_1ce4_e5b9,
    0x94d0_49bb_1331_11eb,
    0x2545_f491_4f6c_dd1d,
]);

const JITTER_ROUNDS: usize = 64;
const RETRIES: usize = 10;

pub(crate) fn init() {
    let mut pool = POOL.lock();
    for round in 0..JITTER_ROUNDS {
        stir(&mut pool, round, crate::time::cycles());
    }
}

/// 32 bytes that nobody can foretell, to seed a generator. Each call gives others.
pub fn seed() -> [u8; 32] {
    let mut pool = POOL.lock();
    for round in 0..8 {
        let drawn = hardware().unwrap_or(0) ^ crate::time::cycles();
        stir(&mut pool, round, drawn);
    }
    let mut seed = [0; 32];
    for (index, chunk) in seed.chunks_exact_mut(8).enumerate() {
        let word = finish(pool[index] ^ hardware().unwrap_or(0));
        chunk.copy_from_slice(&word.to_le_bytes());
    }
    stir(&mut pool, 0, crate::time::cycles());
    seed
}

fn stir(pool: &mut [u64; 4], round: usize, word: u64) {
    let at = round % pool.len();
    pool[at] = finish(pool[at] ^ word).wrapping_add(pool[(at + 1) % pool.len()].rotate_left(23));
}

/// The finaliser of SplitMix64: every input bit reaches every output bit.
fn finish(mut word: u64) -> u64 {
    word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}

fn hardware() -> Option<u64> {
    if arch::cpuid::has_rdseed()
        && let Some(word) = (0..RETRIES).find_map(|_| rdseed())
    {
        return Some(word);
    }
    arch::cpuid::has_rdrand().then(|| (0..RETRIES).find_map(|_| rdrand()))?
}

fn rdseed() -> Option<u64> {
    let (word, ok): (u64, u8);
    // SAFETY: only called where CPUID offers the instruction.
    unsafe {
        asm!("rdseed {}", "setc {}", out(reg) word, out(reg_byte) ok, options(nomem, nostack))
    };
    (ok != 0).then_some(word)
}

fn rdrand() -> Option<u64> {
    let (word, ok): (u64, u8);
    // SAFETY: only called where CPUID offers the instruction.
    unsafe {
        asm!("rdrand {}", "setc {}", out(reg) word, out(reg_byte) ok, options(nomem, nostack))
    };
    (ok != 0).then_some(word)
}
