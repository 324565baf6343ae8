//! Listing a directory that is open.

use sync::{Error, Result};

use super::OpenFile;

use crate::inode::{DirEntry, Emit};
use crate::{FileType, Path};

/// Cursors of `.` and `..`; an inode's own cursors follow.
const DOTS: u64 = 2;

/// Lists from the open file's position, which moves to the last entry taken.
pub fn list(open: &OpenFile, emit: Emit<'_>) -> Result<()> {
    let path = open.path.as_ref().ok_or(Error::NotDirectory)?;
    if path.inode().kind() != FileType::Directory {
        return Err(Error::NotDirectory);
    }
    if path.dentry.is_gone() {
        return Err(Error::NotFound);
    }
    let mut position = open.position.lock();
    let mut at = *position;
    let taken = list_from(path, &mut at, emit);
    *position = at;
    drop(position);
    open.note_read();
    taken
}

fn list_from(path: &Path, at: &mut u64, emit: Emit<'_>) -> Result<()> {
    while *at < DOTS {
        let (name, place): (&[u8], _) = if *at == 0 {
            (b".", path.clone())
        } else {
            (b"..", path.parent())
        };
        let number = place.inode().metadata()?.number;
        if !emit(DirEntry {
            name,
            number,
            kind: FileType::Directory,
            next: *at + 1,
        }) {
            return Ok(());
        }
        *at += 1;
    }
    path.inode().list(*at - DOTS, &mut |entry| {
        let next = entry.next.saturating_add(DOTS);
        let taken = emit(DirEntry { next, ..entry });
        if taken {
            *at = next;
        }
        taken
    })
}
