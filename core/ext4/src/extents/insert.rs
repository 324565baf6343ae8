//! Adding an extent.

use super::lookup::Step;
use crate::error::{Corrupt, Error, Result};
use crate::layout::extent::{self, DEPTH_MAX, Extent};
use crate::layout::inode::Inode;
use crate::volume::Volume;

/// Ways from the root until the leaf has room: each split or growth needs another.
const ATTEMPTS_MAX: usize = 2 * DEPTH_MAX as usize + 4;

/// What became of an insertion into a leaf.
enum Placed {
    /// It is in; true if the leaf's key is another now.
    Done(bool),
    Full,
    Overlaps,
}

impl Volume {
    /// Adds `new`, which overlaps nothing.
    pub(crate) fn insert_extent(&mut self, inode: &mut Inode, new: &Extent) -> Result<()> {
        self.recent.forget(inode.number);
        for _ in 0..ATTEMPTS_MAX {
            let path = self.descend(inode, new.logical)?;
            let leaf = *path.last().ok_or(Corrupt::ExtentTree(inode.number))?;
            let placed =
                self.edit_node(inode, leaf.block, 0, |node| place(node, leaf.index, new))?;
            match placed {
                Placed::Done(false) => return Ok(()),
                Placed::Done(true) => return self.set_keys(inode, &path, new.logical),
                Placed::Overlaps => return Err(Corrupt::ExtentTree(inode.number).into()),
                Placed::Full => self.make_room(inode, &path, new.logical)?,
            }
        }
        Err(Error::FileTooLarge)
    }

    /// The first key of the last node of `path` has become `key`.
    pub(super) fn set_keys(&mut self, inode: &mut Inode, path: &[Step], key: u32) -> Result<()> {
        let above = path.iter().rev().skip(1);
        for step in above {
            let index = step.index.unwrap_or(0);
            self.edit_node(inode, step.block, step.depth, |node| {
                extent::set_key(node, index, key)
            })?;
            if index != 0 {
                break;
            }
        }
        Ok(())
    }

    /// Splits the highest of the full nodes above and with the leaf.
    fn make_room(&mut self, inode: &mut Inode, path: &[Step], logical: u32) -> Result<()> {
        let roomy = path.iter().rposition(|step| !step.is_full);
        match roomy {
            None => self.grow_root(inode),
            Some(at) => match (path.get(at), path.get(at + 1)) {
                (Some(parent), Some(full)) => self.split(inode, parent, full, logical),
                _ => Err(Corrupt::ExtentTree(inode.number).into()),
            },
        }
    }

    /// What was in the root goes to a node below it.
    fn grow_root(&mut self, inode: &mut Inode) -> Result<()> {
        let depth = extent::depth(&inode.map);
        if depth >= DEPTH_MAX {
            return Err(Error::FileTooLarge);
        }
        let block = self.new_node(inode, depth)?;
        let key = extent::key(&inode.map, 0);
        let entries = extent::split_off(&mut inode.map, 0);
        self.edit_node(inode, Some(block), depth, |node| {
            extent::append(node, &entries)
        })?;
        extent::set_depth(&mut inode.map, depth + 1);
        extent::insert_child(&mut inode.map, 0, key, block);
        Ok(())
    }

    /// Splits `full` below `parent`: in the middle, or, where a file becomes longer, at the end.
    fn split(&mut self, inode: &mut Inode, parent: &Step, full: &Step, logical: u32) -> Result<()> {
        let is_append = full.index == full.count.checked_sub(1);
        let at = match (is_append, full.depth) {
            (true, 0) => full.count,
            (true, _) => full.count.saturating_sub(1),
            (false, _) => full.count / 2,
        };
        let new = self.new_node(inode, full.depth)?;
        let (key, entries) = self.edit_node(inode, full.block, full.depth, |node| {
            let key = if at < extent::count(node) {
                extent::key(node, at)
            } else {
                logical
            };
            (key, extent::split_off(node, at))
        })?;
        self.edit_node(inode, Some(new), full.depth, |node| {
            extent::append(node, &entries)
        })?;
        let index = parent.index.unwrap_or(0) + 1;
        self.edit_node(inode, parent.block, parent.depth, |node| {
            extent::insert_child(node, index, key, new);
        })
    }
}

/// Puts `new` behind entry `index` of a leaf, or makes a neighbour longer.
fn place(node: &mut [u8], index: Option<usize>, new: &Extent) -> Placed {
    let count = extent::count(node);
    let behind = index.map_or(0, |index| index + 1);
    let right = (behind < count).then(|| extent::extent(node, behind));
    if right.is_some_and(|right| new.end() > u64::from(right.logical)) {
        return Placed::Overlaps;
    }
    if let Some(index) = index {
        let left = extent::extent(node, index);
        if left.end() > u64::from(new.logical) {
            return Placed::Overlaps;
        }
        if let Some(joined) = left.joined(new) {
            extent::set_extent(node, index, &joined);
            if let Some(all) = right.and_then(|right| joined.joined(&right)) {
                extent::set_extent(node, index, &all);
                extent::remove(node, behind);
            }
            return Placed::Done(false);
        }
    }
    if let Some(joined) = right.and_then(|right| new.joined(&right)) {
        extent::set_extent(node, behind, &joined);
        return Placed::Done(behind == 0);
    }
    if extent::is_full(node) {
        return Placed::Full;
    }
    extent::insert_extent(node, behind, new);
    Placed::Done(behind == 0)
}
