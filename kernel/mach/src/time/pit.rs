//! The interval timer (8254 datasheet) as a counter of known speed, which runs for ever.
//!
//! Channel 1 refreshed the memory of the first PCs, and nobody has wanted it since;
//! channel 0 is the profiler's, and channel 2 needs the speaker's port, which small
//! machines lack.

use arch::instr;
use timekeeping::{Reading, Reference};

const HERTZ: u64 = 1_193_182;
const COMMAND: u16 = 0x43;
const CHANNEL_1: u16 = 0x41;
/// Channel 1, low then high byte, mode 2: counts down from 2^16 again and again.
const RATE_GENERATOR: u8 = 0b0111_0100;
/// Latches the count of channel 1.
const LATCH: u8 = 0b0100_0000;
/// Reads within which a counter that runs has moved.
const TRIES: usize = 1000;

pub(super) const REFERENCE: Reference = Reference {
    hertz: HERTZ,
    bits: 16,
};

/// Proof that the channel counts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Channel(());

/// Sets the channel going; `None` if there is none.
pub(super) fn free_channel() -> Option<Channel> {
    // SAFETY: the interval timer's ports; nobody else uses the channel.
    unsafe {
        instr::out8(COMMAND, RATE_GENERATOR);
        instr::out8(CHANNEL_1, 0);
        instr::out8(CHANNEL_1, 0);
    }
    let channel = Channel(());
    let first = channel.read().count;
    let counts = (0..TRIES).any(|_| channel.read().count != first);
    counts.then_some(channel)
}

impl Channel {
    pub(super) fn read(self) -> Reading {
        let before = super::cycles();
        // SAFETY: latching and reading a count changes nothing else.
        unsafe { instr::out8(COMMAND, LATCH) };
        let after = super::cycles();
        // SAFETY: as above.
        let [low, high] = unsafe { [instr::in8(CHANNEL_1), instr::in8(CHANNEL_1)] };
        let down = u16::from_le_bytes([low, high]);
        Reading {
            before,
            count: u64::from(down.wrapping_neg()),
            after,
        }
    }
}
