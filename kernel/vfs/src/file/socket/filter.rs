//! What programs do to a socket's filter: a program that says how much of each packet it wants.

use alloc::vec::Vec;

use sync::Result;

/// An instruction of the classic packet filter, as a program writes it.
pub type FilterInstruction = [u8; 8];

/// The filter of a socket whose kind can have one.
pub trait Filter {
    /// Puts a program in the place of the one before.
    ///
    /// Errors: `NotPermitted` where it is locked, `Invalid` for what is no program, `OutOfMemory`.
    fn attach(&self, instructions: Vec<FilterInstruction>) -> Result<()>;

    /// Takes it away.
    ///
    /// Errors: `NotPermitted` where it is locked, `NotFound` where there is none.
    fn detach(&self) -> Result<()>;

    /// Locks it; nobody can take that back.
    ///
    /// Errors: `NotPermitted` for who tries.
    fn lock(&self, is_locked: bool) -> Result<()>;

    /// Whether it stays as it is.
    fn is_locked(&self) -> bool;

    /// Shows the program as it was given; an empty one if there is none.
    fn show(&self, to: &mut dyn FnMut(&[FilterInstruction]) -> Result<()>) -> Result<()>;
}
