//! A socket's filter: how much of each packet it wants.

use alloc::vec::Vec;

use bpf::{Flaw, Program, RawInstruction};
use capture::Frame;

use super::facts::Known;
use crate::error::{Error, Result};
use mach::mem::fallible::{self, NoMemory, TryGrow};

/// Checks a program in the bytes of who wrote it.
///
/// Errors: `Invalid` for what is none, `OutOfMemory`.
pub(super) fn check(instructions: &[[u8; 8]]) -> Result<Program> {
    check_by(instructions, Program::check)
}

/// The same for any kind of program that `check` knows.
pub fn check_by<P>(
    instructions: &[[u8; 8]],
    check: impl FnOnce(&[RawInstruction]) -> core::result::Result<P, Flaw>,
) -> Result<P> {
    let mut raw = Vec::new();
    raw.make_room(instructions.len())?;
    raw.extend(instructions.iter().copied().map(RawInstruction::from_bytes));
    let mut checked = Err(Flaw::NoMemory);
    fallible::reserve(|| {
        checked = check(&raw);
        match checked {
            Err(Flaw::NoMemory) => Err(NoMemory),
            _ => Ok(()),
        }
    })?;
    checked.map_err(|_| Error::Invalid)
}

/// A program, perhaps none, and whether it may still be changed.
#[derive(Default)]
pub(super) struct Filter {
    program: Option<Program>,
    pub is_locked: bool,
}

impl Filter {
    /// How many bytes behind the first `skip` are wanted.
    pub(super) fn keep(&self, frame: &Frame<'_>, skip: usize) -> usize {
        match &self.program {
            None => usize::MAX,
            Some(program) => {
                let packet = bpf::Packet::new(frame.parts, skip, frame.network);
                let mut known = Known { frame, start: skip };
                program.run(&packet, &mut known) as usize
            }
        }
    }

    /// Puts another program, or none, in place of the one that comes back.
    ///
    /// Errors: `NotPermitted` where it is locked, `NotFound` if there is none to take away.
    pub(super) fn replace(&mut self, program: Option<Program>) -> Result<Option<Program>> {
        if self.is_locked {
            return Err(Error::NotPermitted);
        }
        if program.is_none() && self.program.is_none() {
            return Err(Error::NotFound);
        }
        Ok(core::mem::replace(&mut self.program, program))
    }

    /// Locks it; nobody can take that back.
    pub(super) fn lock(&mut self, is_locked: bool) -> Result<()> {
        if self.is_locked && !is_locked {
            return Err(Error::NotPermitted);
        }
        self.is_locked = is_locked;
        Ok(())
    }
}
