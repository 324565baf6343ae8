//! What a name means in directories that lie over each other.

use alloc::vec::Vec;

use mach::mem::fallible::TryGrow;
use sync::{Error, Result};
use vfs::{FileType, InodeRef};

/// The white-out that makes its directory hide all directories below; the name that OCI's layers have for it.
pub const OPAQUE: &[u8] = b".wh..wh..opq";

/// What lower layers have under a name: directories to be merged, or one thing of another kind.
pub type Found = Vec<Lower>;

/// A file of a lower layer.
#[derive(Clone)]
pub struct Lower {
    /// Which layer, from the top, from 0 on.
    pub layer: usize,
    /// The file.
    pub inode: InodeRef,
}

/// Whether the file says that its name is gone.
///
/// Errors: what the layer says.
pub fn is_white_out(inode: &InodeRef) -> Result<bool> {
    Ok(inode.kind() == FileType::CharDevice && inode.metadata()?.node == 0)
}

/// Whether a directory hides those below.
///
/// Errors: what the layer says.
pub fn is_opaque(directory: &InodeRef) -> Result<bool> {
    Ok(look_up(directory, OPAQUE)?.is_some())
}

/// What a directory of a layer has under a name; white-outs are given as they are.
///
/// Errors: what the layer says.
pub fn look_up(directory: &InodeRef, name: &[u8]) -> Result<Option<InodeRef>> {
    match directory.lookup(name) {
        Err(Error::NotFound) => Ok(None),
        found => found.map(Some),
    }
}

/// What `lowers`, the topmost first, have under `name`; nothing if the name is gone. With `merges` only
/// directories are looked for: something else ends the search.
///
/// Errors: `OutOfMemory`, and what the layers say.
pub fn find(lowers: &[Lower], name: &[u8], merges: bool) -> Result<Found> {
    let mut found = Found::new();
    for lower in lowers {
        let Some(inode) = look_up(&lower.inode, name)? else {
            continue;
        };
        let is_directory = inode.kind() == FileType::Directory;
        let is_first = found.is_empty() && !merges;
        if is_white_out(&inode)? || !is_directory && !is_first {
            break;
        }
        let ends = !is_directory || lowers.len() > 1 && is_opaque(&inode)?;
        found.make_room(1)?;
        found.push(Lower {
            layer: lower.layer,
            inode,
        });
        if ends {
            break;
        }
    }
    Ok(found)
}
