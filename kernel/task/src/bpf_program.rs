//! Programs of the classic packet filter (`bpf`) as programs hand them over: sockets' filters, and
//! those of system calls.

use alloc::vec::Vec;

use bpf::{CheckError, RawInstruction};
use mach::mem::fallible::{self, NoMemory, TryGrow};
use sync::{Error, Result};

/// An instruction as a program writes it.
pub type Instruction = [u8; RawInstruction::BYTES];

/// Checks a program of any kind that `check` knows in the bytes of who wrote it.
///
/// Errors: `Invalid` for what is none, `OutOfMemory`.
pub fn check_by<P>(
    instructions: &[Instruction],
    check: impl FnOnce(&[RawInstruction]) -> core::result::Result<P, CheckError>,
) -> Result<P> {
    let mut raw = Vec::new();
    raw.make_room(instructions.len())?;
    raw.extend(instructions.iter().copied().map(RawInstruction::from_bytes));
    let mut checked = Err(CheckError::NoMemory);
    fallible::reserve(|| {
        checked = check(&raw);
        match checked {
            Err(CheckError::NoMemory) => Err(NoMemory),
            _ => Ok(()),
        }
    })?;
    checked.map_err(|_| Error::Invalid)
}
