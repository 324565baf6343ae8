//! Changes of mounts that stay where they are.

use alloc::sync::Arc;
use alloc::vec::Vec;

use mach::mem::fallible;
use sync::{Error, Result};

use super::table::{self, CHANGING};
use super::{Mount, MountFlags, Path, Propagation, PropagationType, propagation};

/// What changes of a mount's flags: first some are cleared, then some set.
#[derive(Clone, Copy, Debug)]
pub struct Change {
    /// To be set.
    pub set: MountFlags,
    /// To be cleared.
    pub clear: MountFlags,
    /// What it becomes for those who follow its changes.
    pub propagation: Option<PropagationType>,
}

/// The mount whose top `at` is.
///
/// Errors: `Invalid` if there is none, or it was unmounted.
pub fn check_top(at: &Path) -> Result<&Arc<Mount>> {
    match at.is_mount_top() && table::is_listed(&at.mount) {
        true => Ok(&at.mount),
        false => Err(Error::Invalid),
    }
}

/// Changes the mount at `at`, and with `recursive` each below; all or none.
///
/// Errors: as [`check_top`]; `Busy` if one would become read-only under a file that is open for
/// writing; `OutOfMemory`.
pub fn change(at: &Path, change: Change, recursive: bool) -> Result<()> {
    let _still = CHANGING.lock();
    table::select(check_top(at)?);
    let count = if recursive {
        table::selected().count()
    } else {
        1
    };
    let mut changed: Vec<(Arc<Mount>, MountFlags)> = fallible::vec(count)?;
    for mount in table::selected().take(count) {
        let old = mount.flags();
        match mount.set_flags((old - change.clear) | change.set) {
            Ok(()) => changed.push((mount, old)),
            Err(error) => {
                restore(&changed);
                return Err(error);
            }
        }
    }
    if let Some(wanted) = change.propagation {
        for (mount, _) in &changed {
            propagation::set_type(mount, wanted);
        }
    }
    Ok(())
}

/// Makes the mount at `to` a peer of the one at `from`, and told by whom that is told.
///
/// Errors: `Invalid` if one of both is no mount, they show other files, or `to` has such
/// relations already and `from` none.
pub fn share_group(from: &Path, to: &Path) -> Result<()> {
    let _still = CHANGING.lock();
    let (from, to) = (check_top(from)?, check_top(to)?);
    let (wanted, none) = (from.propagation(), Propagation::default());
    let shows = Arc::ptr_eq(&from.block, &to.block) && from.root.is_above(&to.root);
    if !shows || wanted == none || to.propagation() != none {
        return Err(Error::Invalid);
    }
    to.set_unbindable(false);
    to.set_propagation(wanted);
    Ok(())
}

/// What was read-only before finds no writer that could keep it from becoming so again, or had
/// been allowed one: then it stays writable.
fn restore(changed: &[(Arc<Mount>, MountFlags)]) {
    for (mount, old) in changed {
        let _ = mount.set_flags(*old);
    }
}
