//! `sietch cp`: copies files between this host and a machine.

use crate::copy;
use crate::failure::Failure;
use crate::flags::CpFlags;

/// Runs the command.
pub fn cp(flags: &CpFlags) -> Result<u8, Failure> {
    copy::copy(flags)
}
