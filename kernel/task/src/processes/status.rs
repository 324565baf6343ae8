//! How a process ended or changed, as its parent hears it.

use super::{Pid, Usage};
use crate::signal::Signal;

/// How a process ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ExitStatus {
    /// By itself, with this status (0 to 255).
    Exited(u8),
    /// By this signal.
    Killed(Signal),
}

/// What a parent can wait for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    /// The child ended.
    Ended(ExitStatus),
    /// The child stopped because of this signal.
    Stopped(Signal),
    /// The child goes on.
    Continued,
    /// The tracee stopped for its tracer: the signal, and what is told beside it in the bits
    /// above.
    Trapped(u32),
}

/// A change of a child, as wait4(2) reports it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Report {
    /// The child.
    pub pid: Pid,
    /// Its real user.
    pub uid: u32,
    /// What happened.
    pub change: Change,
    /// What it has used so far, its own children included.
    pub usage: Usage,
}
