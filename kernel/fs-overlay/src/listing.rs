//! The names of several directories as one list.
//!
//! First come the names of the upper directory, then those of each lower one that nothing above hides. Nothing is
//! remembered for each name: a name's place in the list is its layer and, in lower layers, how many names come
//! before it, as those never change. A reader that goes on where the last one stopped finds the layer's own
//! cursor; any other counts from the start.
//!
//! A file that is copied up would change from the second part to the first, and a reader between could miss
//! it. So such names stay in the part where they were, as long as somebody has the directory.

use alloc::vec::Vec;

use mach::mem::fallible::{self, TryGrow};
use mach::sync::Spin;
use sync::Result;
use vfs::FileType;
use vfs::dentry::Name;
use vfs::inode::{DirEntry, Emit};

use crate::cursor::Cursor;
use crate::layers::{is_white_out, look_up};
use crate::node::{Node, number_in};

/// Names that are taken from a layer at once, as layers list under locks.
const LISTED_AT_ONCE: usize = 256;

/// What a directory remembers for its lists.
#[derive(Default)]
pub struct Listing {
    /// Names copied up since the directory is known, sorted.
    copied: Spin<Vec<Name>>,
    /// Where the last reader of a lower layer stopped.
    last: Spin<Resume>,
}

/// Place in a lower layer: names before it, and the layer's cursor.
#[derive(Clone, Copy, Default)]
struct Resume {
    layer: usize,
    before: u64,
    cursor: u64,
}

struct Entry {
    name: Vec<u8>,
    number: u64,
    kind: FileType,
    next: u64,
}

impl Listing {
    /// A name will be in the upper directory that was in a lower one only.
    ///
    /// Errors: `OutOfMemory`.
    pub fn note_copied(&self, name: &Name) -> Result<()> {
        let mut copied = self.copied.lock();
        if let Err(at) = copied.binary_search(name) {
            copied.make_room(1)?;
            copied.insert(at, name.clone());
        }
        Ok(())
    }

    fn is_copied(&self, name: &[u8]) -> bool {
        let copied = self.copied.lock();
        copied.binary_search_by(|known| (**known).cmp(name)).is_ok()
    }
}

/// Some names of a directory from `cursor` on.
fn some(directory: &vfs::InodeRef, cursor: u64) -> Result<Vec<Entry>> {
    let mut entries: Vec<Entry> = fallible::vec(LISTED_AT_ONCE)?;
    let mut failed = None;
    directory.list(cursor, &mut |entry| {
        if entries.len() == LISTED_AT_ONCE {
            return false;
        }
        match fallible::copied(entry.name) {
            Ok(name) => entries.push(Entry {
                name,
                number: entry.number,
                kind: entry.kind,
                next: entry.next,
            }),
            Err(error) => failed = Some(error),
        }
        failed.is_none()
    })?;
    failed.map_or(Ok(entries), |error| Err(error.into()))
}

impl Node {
    /// Lists all names from `cursor` on.
    pub(crate) fn list_merged(&self, cursor: u64, emit: Emit<'_>) -> Result<()> {
        if vfs::Inode::kind(self) != FileType::Directory {
            return Err(sync::Error::NotDirectory);
        }
        let (first, mut before) = match Cursor::from_number(cursor) {
            Cursor::Lower { index, before } => (index, before),
            Cursor::Upper(cursor) if self.list_upper(cursor, emit)? => (0, 0),
            Cursor::Upper(_) => return Ok(()),
        };
        for index in first..self.lowers.len() {
            if !self.list_lower(index, before, emit)? {
                break;
            }
            before = 0;
        }
        Ok(())
    }

    /// The upper layer's part; false if the reader wants no more.
    fn list_upper(&self, mut cursor: u64, emit: Emit<'_>) -> Result<bool> {
        let Some(upper) = self.upper.get() else {
            return Ok(true);
        };
        loop {
            let entries = some(upper, cursor)?;
            let Some(last) = entries.last() else {
                return Ok(true);
            };
            cursor = last.next;
            for entry in &entries {
                let is_hidden = entry.kind == FileType::CharDevice
                    && look_up(upper, &entry.name)?
                        .is_none_or(|inode| is_white_out(&inode).unwrap_or(true));
                if is_hidden || self.listing.is_copied(&entry.name) {
                    continue;
                }
                if !emit(entry.shown(0, Cursor::Upper(entry.next))) {
                    return Ok(false);
                }
            }
        }
    }

    /// The part of a lower layer from its name number `first` on; false if the reader wants no more.
    fn list_lower(&self, index: usize, first: u64, emit: Emit<'_>) -> Result<bool> {
        let Some(lower) = self.lowers.get(index) else {
            return Ok(true);
        };
        let last = *self.listing.last.lock();
        let mut at = match last.layer == index && last.before <= first {
            true => last,
            false => Resume {
                layer: index,
                ..Resume::default()
            },
        };
        loop {
            let entries = some(&lower.inode, at.cursor)?;
            if entries.is_empty() {
                return Ok(true);
            }
            for entry in &entries {
                let before = at.before + 1;
                if at.before >= first
                    && !self.hides(index, entry)?
                    && !emit(entry.shown(lower.layer + 1, Cursor::Lower { index, before }))
                {
                    *self.listing.last.lock() = at;
                    return Ok(false);
                }
                at.before = before;
                at.cursor = entry.next;
            }
        }
    }

    /// Whether what a lower directory lists does not show: it is a white-out, or a layer above has that name.
    fn hides(&self, index: usize, entry: &Entry) -> Result<bool> {
        if let Some(upper) = self.upper.get()
            && let Some(inode) = look_up(upper, &entry.name)?
        {
            return Ok(is_white_out(&inode)? || !self.listing.is_copied(&entry.name));
        }
        for above in self.lowers.iter().take(index) {
            if look_up(&above.inode, &entry.name)?.is_some() {
                return Ok(true);
            }
        }
        let lower = self.lowers.get(index);
        match lower.filter(|_| entry.kind == FileType::CharDevice) {
            Some(lower) => is_white_out(&lower.inode.lookup(&entry.name)?),
            None => Ok(false),
        }
    }
}

impl Entry {
    fn shown(&self, layer: usize, next: Cursor) -> DirEntry<'_> {
        DirEntry {
            name: &self.name,
            number: number_in(layer, self.number),
            kind: self.kind,
            next: next.number(),
        }
    }
}
