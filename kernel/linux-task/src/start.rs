//! How a program starts that no program's execve starts: process 1, and those of the kernel's agent.

use alloc::vec::Vec;

use cred::{Credentials, IdSet};
use mach::mem::fallible;
use sync::Result;
use task::current;
use vfs::Walk;

/// Status of a shell for a program that is not there, or cannot be run.
pub const STATUS_NOT_FOUND: u8 = 127;
/// Status of a shell for one that cannot be run.
pub const STATUS_NOT_EXECUTABLE: u8 = 126;

/// From now on this thread acts for an ordinary user, or for root in another group, and has no further groups.
pub fn become_user(uid: u32, gid: u32) -> Result<()> {
    let all = |id| IdSet {
        real: id,
        effective: id,
        saved: id,
        fs: id,
    };
    let thread = current();
    let mut who = Credentials::clone(&thread.credentials.get());
    who.group = all(gid);
    who.groups = fallible::arc(Vec::new())?;
    who.set_user(all(uid));
    thread.take_credentials(who);
    Ok(())
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
        if vfs::resolve(None, &path, Walk::FOLLOW).is_ok() {
            return Ok(path);
        }
    }
    Ok(fallible::copied(name)?)
}
