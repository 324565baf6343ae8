//! Changes of mounts that stay where they are.

use alloc::sync::Arc;

use super::table::{self, CHANGING};
use super::{Mount, MountFlags, Path};
use crate::error::{Error, Result};

/// The mount whose top `at` is.
///
/// Errors: `Invalid` if there is none, or not in the tree.
pub fn check_top(at: &Path) -> Result<&Arc<Mount>> {
    match at.is_mount_top() && table::is_in_tree(&at.mount) {
        true => Ok(&at.mount),
        false => Err(Error::Invalid),
    }
}

/// Says whether the mount at `at`, and with `recursive` each below, may be bound elsewhere.
///
/// Errors: as [`check_top`].
pub fn set_unbindable(at: &Path, unbindable: bool, recursive: bool) -> Result<()> {
    let _still = CHANGING.lock();
    let top = check_top(at)?;
    table::select(top);
    for mount in table::selected().take(if recursive { usize::MAX } else { 1 }) {
        let mut flags = mount.flags();
        flags.set(MountFlags::UNBINDABLE, unbindable);
        mount.set_flags(flags)?;
    }
    Ok(())
}
