//! How a program starts that no program's execve starts: process 1, and those of the kernel's agent.

use alloc::vec::Vec;

use core::sync::atomic::Ordering;

use cred::{Credentials, IdSet};
use mach::mem::fallible;
use sync::Result;
use task::current;
use vfs::Walk;

/// Status of a shell for a program that is not there, or cannot be run.
pub const STATUS_NOT_FOUND: u8 = 127;
/// Status of a shell for one that cannot be run.
pub const STATUS_NOT_EXECUTABLE: u8 = 126;

/// For whom a program runs, and what it may do at the most.
#[derive(Clone, Copy)]
pub struct Identity<'a> {
    /// User and group; root if there is none.
    pub user: Option<(u32, u32)>,
    /// Further groups.
    pub groups: &'a [u32],
    /// The capabilities that it, or what it runs, can get: bit n is capability n.
    pub capabilities: u64,
    /// Whether exec grants it none (PR_SET_NO_NEW_PRIVS).
    pub gains_nothing: bool,
}

impl Identity<'_> {
    /// From now on this thread, which was root, acts for it.
    pub fn take(&self) -> Result<()> {
        let all = |id| IdSet {
            real: id,
            effective: id,
            saved: id,
            fs: id,
        };
        let thread = current();
        let mut who = Credentials::clone(&thread.credentials.get());
        who.groups = fallible::arc(fallible::copied(self.groups)?)?;
        let caps = &mut who.capabilities;
        for set in [&mut caps.bounding, &mut caps.permitted, &mut caps.effective] {
            *set &= self.capabilities;
        }
        if let Some((uid, gid)) = self.user {
            who.group = all(gid);
            who.set_user(all(uid));
        }
        if self.gains_nothing {
            thread.no_new_privileges.store(true, Ordering::Relaxed);
        }
        thread.take_credentials(who);
        Ok(())
    }
}

/// The path of the program `name`: searched in the folders that `environment` names, if it has no slash.
///
/// Errors: `OutOfMemory`.
pub fn find_program(name: &[u8], environment: &[Vec<u8>]) -> Result<Vec<u8>> {
    if name.contains(&b'/') {
        return Ok(fallible::copied(name)?);
    }
    let path = environment
        .iter()
        .find_map(|word| word.strip_prefix(b"PATH="));
    for folder in path.unwrap_or(b"/bin").split(|&byte| byte == b':') {
        let mut path = fallible::vec(folder.len() + 1 + name.len())?;
        path.extend_from_slice(folder);
        path.push(b'/');
        path.extend_from_slice(name);
        if vfs::look(None, &path, Walk::FOLLOW).is_ok() {
            return Ok(path);
        }
    }
    Ok(fallible::copied(name)?)
}
