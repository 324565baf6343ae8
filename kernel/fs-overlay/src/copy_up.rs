//! From a lower layer to the upper one: done before the first change of a file.
//!
//! The directories above come first, from the top. Each file is made in the work directory, gets its bytes, attributes
//! and times there, and is moved to its place by one rename, so nobody sees half of it. A file that has lost
//! its name meanwhile stays without one.

use alloc::sync::Arc;
use alloc::vec::Vec;

use base::PAGE_BYTES;
use mach::mem::fallible::{self, TryPush};
use mm::io::{Sink, Source};
use sync::{Error, Result};
use vfs::extended::Expect;
use vfs::file::{OpenFile, StatusFlags};
use vfs::{Change, FileType, InodeRef, Metadata, New};

use crate::layers::look_up;
use crate::node::{Node, Place};
use crate::overlay::{Changing, WorkName};

/// Bytes that are copied at once.
const PIECE_BYTES: usize = 16 * PAGE_BYTES;

impl Node {
    /// The file in the upper layer, copied there if it has to be; of a regular file's bytes only the first
    /// `bytes`, for who is about to cut it.
    ///
    /// Errors: `ReadOnly` where there is no upper layer, `NoSpace`, `OutOfMemory`, and what the layers say; then
    /// the file has not changed.
    pub(crate) fn copied_up(&self, bytes: u64) -> Result<&InodeRef> {
        if let Some(upper) = self.upper.get() {
            return Ok(upper);
        }
        for directory in self.to_copy_before()?.iter().rev() {
            directory.copy_up(u64::MAX)?;
        }
        self.copy_up(bytes)?;
        self.upper.get().ok_or(Error::ReadOnly)
    }

    /// The directories above that lower layers alone have, from here to the top.
    fn to_copy_before(&self) -> Result<Vec<Arc<Self>>> {
        let mut above = Vec::new();
        let mut place = self.place.lock().clone();
        while let Some(Place { parent, .. }) = place {
            if parent.upper.get().is_some() {
                break;
            }
            place = parent.place.lock().clone();
            above.try_push(parent)?;
        }
        Ok(above)
    }

    /// Copies it into a directory that the upper layer has.
    fn copy_up(&self, bytes: u64) -> Result<()> {
        let _alone = self.copying.lock();
        if self.upper.get().is_some() {
            return Ok(());
        }
        let place = self.place.lock().clone().ok_or(Error::ReadOnly)?;
        let lower = self.real()?;
        let found = lower.metadata()?;
        place.parent.listing.note_copied(&place.name)?;
        let (name, copy) = self.make_like(lower, &found)?;
        let filled = fill(lower, &copy, &found, bytes);
        let changing = self.overlay.change()?;
        let placed = filled.and_then(|()| put(&changing, &name, &place));
        if let Err(error) = placed {
            // What stays in the work directory goes at the next mount at the latest.
            let _ = changing.discard(changing.work, name.bytes());
            return Err(error);
        }
        self.overlay.note(copy.metadata()?.number, self.me.clone());
        let _ = self.upper.set(copy);
        drop(changing);
        let old = self.place.lock().take();
        drop(old);
        Ok(())
    }

    /// A file of the same kind in the work directory.
    fn make_like(&self, lower: &InodeRef, found: &Metadata) -> Result<(WorkName, InodeRef)> {
        let target = match found.kind {
            FileType::Symlink => lower.read_link()?,
            _ => Vec::new(),
        };
        let new = New {
            kind: found.kind,
            mode: found.mode,
            uid: found.uid,
            gid: found.gid,
            device: found.node,
            target: &target,
        };
        let changing = self.overlay.change()?;
        let name = changing.name();
        let copy = changing.work.create(name.bytes(), &new)?;
        Ok((name, copy))
    }
}

/// Moves a copy to its place, unless the file has lost that. The directory keeps its times: for programs nothing in it
/// has changed.
fn put(changing: &Changing<'_>, name: &WorkName, place: &Place) -> Result<()> {
    let directory = place.parent.upper.get().ok_or(Error::NotFound)?;
    let before = directory.metadata()?;
    if before.links == 0 || look_up(directory, &place.name)?.is_some() {
        return changing.discard(changing.work, name.bytes());
    }
    changing.put(name.bytes(), directory, &place.name, None)?;
    // The copy is in its place, whatever becomes of the times.
    let _ = directory.change(&times(&before));
    Ok(())
}

fn times(of: &Metadata) -> Change {
    Change {
        accessed: Some(of.accessed),
        modified: Some(of.modified),
        ..Change::default()
    }
}

/// Gives a copy the bytes, attributes and times of its model.
fn fill(from: &InodeRef, to: &InodeRef, found: &Metadata, bytes: u64) -> Result<()> {
    if found.kind == FileType::Regular {
        copy_bytes(from, to, found.size.min(bytes))?;
    }
    if let (Some(from), Some(to)) = (from.extended(), to.extended()) {
        let names = match from.list() {
            // A folder of the host's, on a file system without any.
            Err(Error::Unsupported) => Vec::new(),
            names => names?,
        };
        for name in names
            .split(|byte| *byte == 0)
            .filter(|name| !name.is_empty())
        {
            match from.get(name) {
                // The host has taken it away meanwhile.
                Err(Error::NoData) => {}
                value => to.set(name, &value?, Expect::Any)?,
            }
        }
    }
    to.change(&Change {
        mode: Some(found.mode),
        ..times(found)
    })
}

/// Copies the first `bytes` of a file; holes stay holes.
fn copy_bytes(from: &InodeRef, to: &InodeRef, bytes: u64) -> Result<()> {
    let source = OpenFile::new(from.clone(), StatusFlags::empty());
    let target = OpenFile::new(to.clone(), StatusFlags::RDWR);
    let mut buffer = fallible::zeroed(PIECE_BYTES)?;
    let mut at = 0;
    while let Some(data) = next_data(from, at, bytes)? {
        at = data;
        let len = (bytes - at).min(PIECE_BYTES as u64) as usize;
        let piece = buffer.get_mut(..len).ok_or(Error::Invalid)?;
        let read = from.read_at(&source, at, &mut Sink::kernel(piece))?;
        if read == 0 {
            break;
        }
        let mut piece = Source::kernel(piece.get(..read).ok_or(Error::Invalid)?);
        while piece.remaining() != 0 {
            match to.write_at(&target, at, &mut piece)? {
                0 => return Err(Error::NoSpace),
                written => at += written as u64,
            }
        }
    }
    match to.metadata()?.size < bytes {
        true => to.truncate(bytes),
        false => Ok(()),
    }
}

/// Where data begins at or after `at`; `None` if there is none before `end`.
fn next_data(from: &InodeRef, at: u64, end: u64) -> Result<Option<u64>> {
    if at >= end {
        return Ok(None);
    }
    match from.seek(at, false) {
        Ok(data) => Ok(Some(data).filter(|data| *data < end)),
        Err(Error::NoSuchDevice) => Ok(None),
        Err(error) => Err(error),
    }
}
