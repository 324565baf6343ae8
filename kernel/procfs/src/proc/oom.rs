//! How readily a process is killed when memory runs out: oom_score, oom_score_adj, oom_adj.

use core::fmt::{self, Write};
use core::sync::atomic::Ordering::Relaxed;

use super::task::Subject;
use cred::Capability;
use sync::{Error, Result};
use task::current;
use task::out_of_memory::{self, ADJUSTMENT_MAX, ADJUSTMENT_MIN};
use vfs::pseudo::Text;

/// The value of the older file that means: never.
const OLD_NEVER: i32 = -17;
const OLD_MAX: i32 = 15;

/// /proc/PID/oom_score.
pub fn score(subject: &Subject, text: &mut Text) -> fmt::Result {
    writeln!(text, "{}", out_of_memory::score(&subject.process))
}

fn adjustment_of(subject: &Subject) -> i32 {
    subject.process.oom_adjustment.load(Relaxed)
}

/// /proc/PID/oom_score_adj.
pub fn adjustment(subject: &Subject, text: &mut Text) -> fmt::Result {
    writeln!(text, "{}", adjustment_of(subject))
}

/// /proc/PID/oom_adj: the same on the scale of older Linux.
pub fn old_adjustment(subject: &Subject, text: &mut Text) -> fmt::Result {
    let old = match adjustment_of(subject) {
        ADJUSTMENT_MAX => OLD_MAX,
        value => value * OLD_NEVER / ADJUSTMENT_MIN,
    };
    writeln!(text, "{old}")
}

/// Stores to oom_score_adj.
///
/// Errors: `Invalid` for no number or one out of range, `AccessDenied` for a lower one
/// without the capability.
pub fn set_adjustment(subject: &Subject, text: &[u8]) -> Result<()> {
    set(subject, parse(text, ADJUSTMENT_MIN, ADJUSTMENT_MAX)?)
}

/// Stores to oom_adj; errors as [`set_adjustment`].
pub fn set_old_adjustment(subject: &Subject, text: &[u8]) -> Result<()> {
    let value = match parse(text, OLD_NEVER, OLD_MAX)? {
        OLD_MAX => ADJUSTMENT_MAX,
        old => old * ADJUSTMENT_MIN / OLD_NEVER,
    };
    set(subject, value)
}

fn set(subject: &Subject, value: i32) -> Result<()> {
    let may_lower = current()
        .credentials
        .with(|credentials| credentials.has(Capability::SysResource));
    if value < adjustment_of(subject) && !may_lower {
        return Err(Error::AccessDenied);
    }
    subject.process.oom_adjustment.store(value, Relaxed);
    Ok(())
}

fn parse(text: &[u8], min: i32, max: i32) -> Result<i32> {
    let text = core::str::from_utf8(text).map_err(|_| Error::Invalid)?;
    let value = text.trim().parse().map_err(|_| Error::Invalid)?;
    match (min..=max).contains(&value) {
        true => Ok(value),
        false => Err(Error::Invalid),
    }
}
