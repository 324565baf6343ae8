//! Programs that act for their owner lose that when another changes them.
//!
//! Who writes to a file, or changes its size, without CAP_FSETID takes away its set-user-ID
//! bit, and the set-group-ID bit where it means that a program acts for the group; so does
//! everybody who gives the file to another (chown(2), inode(7)). Otherwise what was written
//! would run with the owner's rights. It is done before the bytes change.

use cred::Capability;
use sync::Result;

use crate::{Change, FileType, Inode, Metadata};

/// S_ISUID, S_ISGID, and execution by the group.
const SET_USER: u32 = 0o4000;
const SET_GROUP: u32 = 0o2000;
const GROUP_EXECUTES: u32 = 0o010;
/// Both bits.
pub const SET_IDS: u32 = SET_USER | SET_GROUP;

/// The current thread is about to change the bytes of `inode`.
pub fn shed(inode: &dyn Inode) -> Result<()> {
    let is_trusted = cred::credentials().with(|credentials| credentials.has(Capability::Fsetid));
    if is_trusted || !inode.may_set_ids() {
        return Ok(());
    }
    let file = inode.metadata()?;
    match mode_after_change(&file) {
        mode if mode == file.mode => Ok(()),
        mode => inode.change(&Change {
            mode: Some(mode),
            ..Change::default()
        }),
    }
}

/// The mode of a file that the current thread changes.
pub fn mode_after_change(file: &Metadata) -> u32 {
    if file.kind != FileType::Regular {
        return file.mode;
    }
    let keeps_group = file.mode & GROUP_EXECUTES == 0
        && cred::credentials().with(|credentials| {
            credentials.is_in_group(file.gid) || credentials.has(Capability::Fsetid)
        });
    let lost = if keeps_group { SET_USER } else { SET_IDS };
    file.mode & !lost
}
