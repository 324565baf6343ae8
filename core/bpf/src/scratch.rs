//! No program reads scratch memory that it has not written on the way there.
//!
//! The words are not cleared before a run, in Linux, so a careless program would read what
//! another left. Jumps lead forward, so one walk over the instructions is enough: a word
//! is written at an instruction if it is written on all ways that lead there.

use alloc::vec::Vec;

use crate::check::CheckError;
use crate::instruction::{Instruction, Slot};

/// A set of words, one bit each.
type Written = u16;

const ALL: Written = Written::MAX;

fn bit(slot: Slot) -> Written {
    1 << slot.index()
}

/// Refuses the first read that some path leads to without a write.
pub(crate) fn check(instructions: &[Instruction]) -> Result<(), CheckError> {
    // What each instruction may count on by the jumps to it; all, where none leads.
    let mut entry = Vec::new();
    let room = entry.try_reserve_exact(instructions.len());
    room.map_err(|_| CheckError::NoMemory)?;
    entry.resize(instructions.len(), ALL);
    let mut written: Written = 0;
    for (at, instruction) in instructions.iter().enumerate() {
        written &= entry[at];
        let mut leads_to = |skip: usize, written: Written| {
            if let Some(entry) = entry.get_mut(at + 1 + skip) {
                *entry &= written;
            }
        };
        match *instruction {
            Instruction::Remember(_, slot) => written |= bit(slot),
            Instruction::Recall(_, slot) if written & bit(slot) == 0 => {
                let slot = slot.index() as u32;
                return Err(CheckError::Unwritten { at, slot });
            }
            Instruction::Jump(skip) => {
                leads_to(skip as usize, written);
                written = ALL;
            }
            Instruction::Branch { yes, no, .. } => {
                leads_to(yes.into(), written);
                leads_to(no.into(), written);
                written = ALL;
            }
            _ => {}
        }
    }
    Ok(())
}
