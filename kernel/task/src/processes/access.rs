//! Who may look into another process (ptrace(2), "Ptrace access mode checking").
//!
//! A thread of the same process may. Otherwise all three user ids and all three group ids of
//! the target must be the caller's, the target must be dumpable, and it must hold no
//! capability that the caller lacks; each of these CAP_SYS_PTRACE replaces. A process is
//! dumpable unless it has said otherwise (PR_SET_DUMPABLE), has changed its credentials, or
//! runs a program that is set-id or that its user may not read: what such a process has in
//! memory or open was perhaps fetched with other rights than its ids show.

use core::sync::atomic::Ordering;

use cred::{Capability, Credentials};
use sync::{Error, Result};

use super::{Process, Thread, current};

/// Which of the caller's ids and capabilities count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Caller {
    /// Those of the file system and those in effect, for what has a name in /proc
    /// (PTRACE_MODE_FSCREDS).
    FileSystem,
    /// The real and the permitted ones, for calls that name a process
    /// (PTRACE_MODE_REALCREDS).
    Real,
}

/// Whether the current thread may look into `target`.
///
/// Errors: `NotPermitted`, which files turn into `AccessDenied`.
pub fn check_access(target: &Thread, caller: Caller) -> Result<()> {
    let me = current();
    if core::ptr::eq(&*me.process, &*target.process) {
        return Ok(());
    }
    let own = me.credentials.get();
    if own.has(Capability::SysPtrace) {
        return Ok(());
    }
    let theirs = target.credentials.get();
    let is_dumpable = target.process.dumpable.load(Ordering::Relaxed);
    match is_dumpable && owns(&own, &theirs, caller) {
        true => Ok(()),
        false => Err(Error::NotPermitted),
    }
}

/// Whether all ids of `theirs` are the caller's, and no capability is more.
fn owns(own: &Credentials, theirs: &Credentials, caller: Caller) -> bool {
    let capabilities = &own.capabilities;
    let (user, group, held) = match caller {
        Caller::FileSystem => (own.user.fs, own.group.fs, capabilities.effective),
        Caller::Real => (own.user.real, own.group.real, capabilities.permitted),
    };
    theirs.user.is_all(user)
        && theirs.group.is_all(group)
        && theirs.capabilities.permitted & !held == 0
}

/// Whether the current thread may look into `target`; a process without threads has nothing
/// to be seen.
pub fn check_process_access(target: &Process, caller: Caller) -> Result<()> {
    let thread = target.first_thread().ok_or(Error::NoSuchProcess)?;
    check_access(&thread, caller)
}
