//! How a program wants its memory and its system to look (personality(2)).
//!
//! A thread has one word, which its children and the programs that it starts take over. The bits
//! that loosen protection end where a program gets other rights than its caller's.

use core::sync::atomic::{AtomicU32, Ordering};

/// Everything at its usual address.
const NO_RANDOMIZE: u32 = 0x004_0000;
/// A first page of zeros; nothing is mapped there.
const PAGE_ZERO: u32 = 0x010_0000;
/// An older layout, which is not made.
const COMPAT_LAYOUT: u32 = 0x020_0000;
/// What can be read can be executed.
const READ_IMPLIES_EXEC: u32 = 0x040_0000;
/// The part that names a system.
const SYSTEM: u32 = 0xff;
/// Linux on 32 bits.
const LINUX32: u32 = 8;

/// What is cleared where a program gains rights.
const LOOSE: u32 = NO_RANDOMIZE | PAGE_ZERO | COMPAT_LAYOUT | READ_IMPLIES_EXEC;

/// The word of a thread.
#[derive(Default)]
pub struct Personality(AtomicU32);

impl Personality {
    /// As the program knows it.
    pub fn bits(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }

    /// The same from now on.
    pub fn set(&self, bits: u32) {
        self.0.store(bits, Ordering::Relaxed);
    }

    /// A new program starts: one of 64 bits says itself what can be executed.
    pub fn start_program(&self, gains_rights: bool) {
        let cleared = if gains_rights {
            LOOSE
        } else {
            READ_IMPLIES_EXEC
        };
        self.0.fetch_and(!cleared, Ordering::Relaxed);
    }

    /// Whether a program, which may gain rights, goes to random addresses.
    pub fn randomizes(&self, gains_rights: bool) -> bool {
        gains_rights || self.bits() & NO_RANDOMIZE == 0
    }

    /// Whether what can be read can be executed.
    pub fn reads_imply_exec(&self) -> bool {
        self.bits() & READ_IMPLIES_EXEC != 0
    }

    /// Whether uname(2) names a machine of 32 bits.
    pub fn is_32_bit(&self) -> bool {
        self.bits() & SYSTEM == LINUX32
    }
}
