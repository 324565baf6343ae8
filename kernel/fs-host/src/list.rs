//! The names of a directory.

use alloc::vec::Vec;

use sync::Result;
use vfs::FileType;
use vfs::inode::{DirEntry, Emit};

use crate::answers::is_listed;

/// Stretches of a directory in a row without a name to show; `.` and `..` may be in two.
const UNLISTED_MAX: u32 = 4;

/// A name in a directory.
pub struct Name {
    name: Vec<u8>,
    number: u64,
    kind: FileType,
    next: u64,
}

impl Name {
    /// That of an inode with this number and kind (`d_type`); the list goes on at `next`.
    pub fn new(name: &[u8], number: u64, kind: u32, next: u64) -> Self {
        let kind = kind.checked_mul(1 << 12).and_then(FileType::from_mode);
        Self {
            name: name.to_vec(),
            number,
            kind: kind.unwrap_or(FileType::Regular),
            next,
        }
    }

    fn entry(&self) -> DirEntry<'_> {
        DirEntry {
            name: &self.name,
            number: self.number,
            kind: self.kind,
            next: self.next,
        }
    }
}

/// Lists names from `cursor` on, of which `names` has a stretch from each cursor on, empty at the end.
pub(crate) fn list(
    mut cursor: u64,
    emit: Emit<'_>,
    names: impl Fn(u64) -> Result<Vec<Name>>,
) -> Result<()> {
    let mut unlisted = 0;
    loop {
        let names = names(cursor)?;
        let Some(last) = names.last().map(|name| name.next) else {
            return Ok(());
        };
        unlisted += 1;
        for name in names.iter().filter(|name| is_listed(&name.name)) {
            unlisted = 0;
            if !emit(name.entry()) {
                return Ok(());
            }
        }
        // A server whose cursor stands still, or that names nothing, would keep us here for ever.
        if last == cursor || unlisted == UNLISTED_MAX {
            return Ok(());
        }
        cursor = last;
    }
}
