//! How large a program may make a file (RLIMIT_FSIZE).
//!
//! A write that begins below the limit ends at it; one that begins beyond, and a truncate(2)
//! to beyond, fail and raise SIGXFSZ.

use cred::{Resource, UNLIMITED};
use sync::{Error, Result};

use super::signals::signals;

/// How many of `wanted` bytes the current thread may write at `offset`; asked for regular
/// files. Where it is unlimited, `offset` is not asked for.
///
/// Errors: `FileTooLarge`.
pub fn check_write(offset: impl FnOnce() -> Result<u64>, wanted: usize) -> Result<usize> {
    let limit = limit();
    if limit == UNLIMITED || wanted == 0 {
        return Ok(wanted);
    }
    match usize::try_from(limit.saturating_sub(offset()?)) {
        Ok(0) => Err(exceeded()),
        Ok(room) => Ok(wanted.min(room)),
        Err(_) => Ok(wanted),
    }
}

/// Whether the current thread may make a file `size` bytes long that is shorter now.
///
/// Errors: `FileTooLarge`.
pub fn check_growth(size: u64) -> Result<()> {
    match size > limit() {
        true => Err(exceeded()),
        false => Ok(()),
    }
}

fn limit() -> u64 {
    cred::limit(Resource::FileBytes)
}

fn exceeded() -> Error {
    signals().raise_file_too_large();
    Error::FileTooLarge
}
