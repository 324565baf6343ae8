//! Names that come, go and move.
//!
//! Each change is one rename or link in the upper layer, made beside its place where it needs more than that; what it
//! leaves over is taken away afterwards. Whoever changes a directory has it in the upper layer first.

use alloc::sync::Arc;
use alloc::vec::Vec;

use sync::{Error, Result};
use vfs::inode::DirEntry;
use vfs::{FileType, Inode, InodeRef, New};

use crate::layers::{OPAQUE, is_white_out, look_up};
use crate::node::Node;
use crate::overlay::Changing;

/// Whether a new file would be taken for a white-out.
fn is_reserved(name: &[u8], kind: FileType, device: u64) -> bool {
    name == OPAQUE || kind == FileType::CharDevice && device == 0
}

/// What the upper directory has where a new name is to be: nothing or a white-out.
///
/// Errors: `Exists`, and what the layer says.
fn free_place(directory: &InodeRef, name: &[u8]) -> Result<Option<InodeRef>> {
    let old = look_up(directory, name)?;
    match &old {
        Some(old) if !is_white_out(old)? => Err(Error::Exists),
        _ => Ok(old),
    }
}

impl Node {
    /// Makes a file.
    pub(crate) fn add(&self, name: &[u8], new: &New<'_>) -> Result<Arc<Self>> {
        if is_reserved(name, new.kind, new.device) {
            return Err(Error::NotPermitted);
        }
        let directory = self.copied_up(u64::MAX)?;
        let changing = self.overlay.change()?;
        let made = match free_place(directory, name)? {
            None => directory.create(name, new)?,
            Some(old) => make_over(&changing, directory, name, &old, new)?,
        };
        drop(changing);
        Self::of(&self.overlay, Some(made), Vec::new(), None)
    }

    /// Gives a file one more name.
    pub(crate) fn add_link(&self, name: &[u8], target: &Self) -> Result<()> {
        if name == OPAQUE {
            return Err(Error::NotPermitted);
        }
        let directory = self.copied_up(u64::MAX)?;
        let target = target.copied_up(u64::MAX)?;
        let changing = self.overlay.change()?;
        let Some(old) = free_place(directory, name)? else {
            return directory.link(name, target);
        };
        let made = changing.name();
        changing.work.link(made.bytes(), target)?;
        changing.put(made.bytes(), directory, name, Some(&old))
    }

    /// Removes the name of anything but a directory.
    pub(crate) fn remove(&self, name: &[u8]) -> Result<()> {
        let directory = self.copied_up(u64::MAX)?;
        let changing = self.overlay.change()?;
        match self.lower_has(name)? {
            true => changing.hide(directory, name),
            false => directory.unlink(name),
        }
    }

    /// Removes an empty directory.
    pub(crate) fn remove_directory(&self, name: &[u8]) -> Result<()> {
        let gone = self.child(name)?;
        if gone.kind() != FileType::Directory {
            return Err(Error::NotDirectory);
        }
        let directory = self.copied_up(u64::MAX)?;
        let changing = self.overlay.change()?;
        gone.check_empty()?;
        match self.lower_has(name)? {
            true => changing.hide(directory, name),
            false => changing.discard(directory, name),
        }
    }

    fn check_empty(&self) -> Result<()> {
        let mut is_empty = true;
        self.list_merged(0, &mut |_: DirEntry<'_>| {
            is_empty = false;
            false
        })?;
        match is_empty {
            true => Ok(()),
            false => Err(Error::NotEmpty),
        }
    }

    /// Copies up what is to be moved into `to`; a directory hides what is below its new name.
    fn prepare_move(&self, to: &Self) -> Result<()> {
        if self.kind() == FileType::Directory && !self.lowers.is_empty() {
            return Err(Error::CrossDevice);
        }
        let moved = self.copied_up(u64::MAX)?;
        if self.kind() != FileType::Directory || to.lowers.is_empty() {
            return Ok(());
        }
        let changing = self.overlay.change()?;
        match look_up(moved, OPAQUE)? {
            None => changing.put_white_out(moved, OPAQUE),
            Some(_) => Ok(()),
        }
    }

    /// Moves a name over what is there.
    pub(crate) fn move_name(&self, name: &[u8], to: &Self, to_name: &[u8]) -> Result<()> {
        if to_name == OPAQUE {
            return Err(Error::NotPermitted);
        }
        let moved = self.child(name)?;
        let target = match to.child(to_name) {
            Err(Error::NotFound) => None,
            found => Some(found?),
        };
        if let Some(target) = target.filter(|target| target.kind() == FileType::Directory) {
            target.check_empty()?;
        }
        moved.prepare_move(to)?;
        let (from, into) = (self.copied_up(u64::MAX)?, to.copied_up(u64::MAX)?);
        let changing = self.overlay.change()?;
        let stays_hidden = self.lower_has(name)?;
        let old = look_up(into, to_name)?;
        let has_directory = old
            .iter()
            .any(|old| moved.kind() == FileType::Directory || old.kind() == FileType::Directory);
        if !stays_hidden && !has_directory {
            return from.rename(name, into, to_name, false);
        }
        if old.is_none() {
            changing.put_white_out(into, to_name)?;
        }
        from.rename(name, into, to_name, true)?;
        // The name is gone now; what is left under it is what was replaced.
        match stays_hidden {
            false => changing.discard(from, name),
            true if is_white_out(&from.lookup(name)?)? => Ok(()),
            true => changing.hide(from, name),
        }
    }

    /// Exchanges two names.
    pub(crate) fn exchange_names(&self, name: &[u8], to: &Self, to_name: &[u8]) -> Result<()> {
        self.child(name)?.prepare_move(to)?;
        to.child(to_name)?.prepare_move(self)?;
        let (from, into) = (self.copied_up(u64::MAX)?, to.copied_up(u64::MAX)?);
        let _changing = self.overlay.change()?;
        from.rename(name, into, to_name, true)
    }
}

/// Makes a file where a white-out is. A new directory hides what the white-out hid.
fn make_over(
    changing: &Changing<'_>,
    directory: &InodeRef,
    name: &[u8],
    old: &InodeRef,
    new: &New<'_>,
) -> Result<InodeRef> {
    let made_as = changing.name();
    let made = changing.work.create(made_as.bytes(), new)?;
    if new.kind == FileType::Directory
        && let Err(error) = changing.put_white_out(&made, OPAQUE)
    {
        // What stays in the work directory goes at the next mount at the latest.
        let _ = changing.discard(changing.work, made_as.bytes());
        return Err(error);
    }
    changing.put(made_as.bytes(), directory, name, Some(old))?;
    Ok(made)
}
