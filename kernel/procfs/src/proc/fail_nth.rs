//! /proc/PID/fail-nth: which allocation of a thread is to fail (`task::fail_nth`).

use core::fmt::{self, Write};

use super::task::Subject;
use sync::{Error, Result};
use vfs::pseudo::Text;

/// How many allocations from now on it is; 0 once it has failed.
pub fn left(subject: &Subject, text: &mut Text) -> fmt::Result {
    let thread = subject.thread().map_err(|_| fmt::Error)?;
    writeln!(text, "{}", thread.fail_nth.left())
}

/// Sets it.
///
/// Errors: `Invalid` for no number, `NoSuchProcess`.
pub fn set(subject: &Subject, text: &[u8]) -> Result<()> {
    let text = core::str::from_utf8(text).map_err(|_| Error::Invalid)?;
    let count = text.trim().parse().map_err(|_| Error::Invalid)?;
    subject.thread()?.fail_nth.set(count);
    Ok(())
}
