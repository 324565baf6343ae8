//! Which reads set a file's access time.
//!
//! The mount says it (mount(2)): no read (`noatime`), none of a directory (`nodiratime`), every
//! read (`strictatime`); as a rule the first one after a change, and the first of a day
//! (`relatime`). That is enough for who compares the last read with the last change, and spares
//! most reads a store. An open file may ask to leave no trace (O_NOATIME), and nothing is set
//! where the mount is read-only.
//!
//! Not here: volumes of the host, whose access times the host sets as its own mounts say.

use super::{OpenFile, StatusFlags};
use crate::{FileType, MountFlags, Path};

/// A program has read through `open`.
pub fn note_read(open: &OpenFile) {
    if let Some(place) = &open.path
        && !open.flags().contains(StatusFlags::NOATIME)
    {
        note(place);
    }
}

/// What is at `place` was read.
pub fn note(place: &Path) {
    let (mount, kind) = (&place.mount, place.dentry.kind());
    let flags = mount.flags();
    let is_spared = flags.contains(MountFlags::NOATIME)
        || kind == FileType::Directory && flags.contains(MountFlags::NODIRATIME);
    if !is_spared && !mount.is_read_only() {
        place
            .inode()
            .note_read(flags.contains(MountFlags::RELATIME));
    }
}
