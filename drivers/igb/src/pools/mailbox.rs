//! The physical function's half of a mailbox (7.10.2.9.1). Who holds the memory reads and writes
//! it; the card lets only one side hold it.

use hal::Registers;

use crate::message::{Message, WORDS};
use crate::registers_pools::{PF_HOLDS, PF_SEIZE, PF_SEND, PF_TAKE, pf_mailbox, pf_mailbox_memory};

/// Looks until the memory is taken away from a virtual function that does not let go of it.
const LOOKS_MAX: u32 = 10;

/// Holds the memory, and reads the message in it; `None` if the virtual function does not let
/// go, which loses what it had there.
pub(super) fn read(registers: &impl Registers, vf: u16) -> Option<Message> {
    let is_ours = || {
        registers.write32(pf_mailbox(vf), PF_HOLDS);
        registers.read32(pf_mailbox(vf)) & PF_HOLDS != 0
    };
    if !(0..LOOKS_MAX).any(|_| is_ours()) {
        registers.write32(pf_mailbox(vf), PF_SEIZE);
        return None;
    }
    let word = |at: usize| registers.read32(pf_mailbox_memory(vf) + 4 * at);
    Some(core::array::from_fn(word))
}

/// Writes the first `words` words of an answer and lets go of the memory.
pub(super) fn answer(registers: &impl Registers, vf: u16, answer: &Message, words: usize) {
    for (at, word) in answer.iter().enumerate().take(words.min(WORDS)) {
        registers.write32(pf_mailbox_memory(vf) + 4 * at, *word);
    }
    registers.write32(pf_mailbox(vf), PF_TAKE | PF_SEND);
}

/// Lets go of the memory, without an answer.
pub(super) fn drop_message(registers: &impl Registers, vf: u16) {
    registers.write32(pf_mailbox(vf), PF_TAKE);
}
