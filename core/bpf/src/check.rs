//! Programs that may run.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::decode::decode;
use crate::instruction::{Instruction, RawInstruction};
use crate::scratch;

/// `BPF_MAXINSNS`.
pub const INSTRUCTIONS_MAX: usize = 4096;

/// Why instructions are not a program; `at` counts from zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CheckError {
    /// None, or more than [`INSTRUCTIONS_MAX`].
    Length {
        /// How many there are.
        instructions: usize,
    },
    /// A code that the machine does not have.
    Unknown {
        /// Where.
        at: usize,
        /// Which.
        code: u16,
    },
    /// A division by the constant zero.
    Divisor {
        /// Where.
        at: usize,
    },
    /// A shift by more bits than there are.
    Shift {
        /// Where.
        at: usize,
        /// By how many.
        bits: u32,
    },
    /// There are sixteen words of scratch memory.
    Scratch {
        /// Where.
        at: usize,
        /// Which word it wanted.
        slot: u32,
    },
    /// A read of a word that some path to here has not written.
    Unwritten {
        /// Where.
        at: usize,
        /// Which word.
        slot: u32,
    },
    /// A jump out of the program.
    Jump {
        /// Where.
        at: usize,
        /// Over how many.
        skips: u32,
    },
    /// An extension that does not exist.
    Extension {
        /// Where.
        at: usize,
        /// Its offset as written.
        offset: u32,
    },
    /// The last instruction does not return.
    NoReturn,
    /// An instruction that filters over system calls do not have ([`crate::CallFilter`]).
    NotForCalls {
        /// Where.
        at: usize,
    },
    /// There is no memory to hold it.
    NoMemory,
}

/// Instructions that hold this crate's invariants.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Program(Box<[Instruction]>);

impl Program {
    /// Checks a program as Linux does.
    pub fn check(raw: &[RawInstruction]) -> Result<Self, CheckError> {
        if raw.is_empty() || raw.len() > INSTRUCTIONS_MAX {
            let instructions = raw.len();
            return Err(CheckError::Length { instructions });
        }
        let mut instructions = Vec::new();
        let room = instructions.try_reserve_exact(raw.len());
        room.map_err(|_| CheckError::NoMemory)?;
        for (at, &one) in raw.iter().enumerate() {
            instructions.push(decode(one, at, raw.len() - at - 1)?);
        }
        if !matches!(instructions.last(), Some(Instruction::Return(_))) {
            return Err(CheckError::NoReturn);
        }
        scratch::check(&instructions)?;
        Ok(Self(instructions.into_boxed_slice()))
    }

    pub(crate) fn instructions(&self) -> &[Instruction] {
        &self.0
    }
}
