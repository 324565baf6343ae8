//! System V's `struct termio`: the settings that TCGETA and TCSETA exchange, in halves of the words
//! of `struct termios` and with eight special characters.
//!
//! What it has no room for stays as it is.

use base::VirtAddr;
use mm::user;
use sync::Result;

use super::termios::{Input, Local, Output, Termios};

/// Special characters in it; they are the first ones of `struct termios`.
const SPECIALS: usize = 8;
/// Four halves, the line discipline, the special characters, and a byte of padding.
const BYTES: usize = 18;
/// The half of a word that it shows.
const SHOWN: u32 = 0xffff;

/// The part of `termios` that it shows.
pub(super) fn encode(termios: &Termios) -> [u8; BYTES] {
    let words = [
        termios.input.bits(),
        termios.output.bits(),
        termios.control,
        termios.local.bits(),
    ];
    let mut bytes = [0; BYTES];
    for (place, word) in bytes.chunks_exact_mut(2).zip(words) {
        place.copy_from_slice(&(word as u16).to_ne_bytes());
    }
    bytes[8] = termios.line;
    bytes[9..9 + SPECIALS].copy_from_slice(&termios.special[..SPECIALS]);
    bytes
}

/// `before` with what a program has put there.
pub(super) fn decode(at: VirtAddr, before: &Termios) -> Result<Termios> {
    let [input, output, control, local] = user::read::<[u16; 4]>(at)?;
    let [line, special @ ..]: [u8; SPECIALS + 1] = user::read(at + 8)?;
    let merged = |before: u32, half: u16| before & !SHOWN | u32::from(half);
    let mut termios = *before;
    termios.input = Input::from_bits_retain(merged(before.input.bits(), input));
    termios.output = Output::from_bits_retain(merged(before.output.bits(), output));
    termios.control = merged(before.control, control);
    termios.local = Local::from_bits_retain(merged(before.local.bits(), local));
    termios.line = line;
    termios.special[..SPECIALS].copy_from_slice(&special);
    Ok(termios)
}
