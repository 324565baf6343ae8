//! Taking blocks away from a file, and turning reserved ones into written ones.

use core::ops::Range;

use super::lookup::{Mapping, Step};
use crate::error::{Corrupt, Result};
use crate::layout::extent::{self, Extent};
use crate::layout::inode::{FileType, Inode};
use crate::volume::Volume;

impl Volume {
    /// Frees what `range` has of blocks, at most `extents` extents of them. Returns the block from
    /// which on something may be left.
    pub(crate) fn remove_range(
        &mut self,
        inode: &mut Inode,
        range: Range<u64>,
        extents: usize,
    ) -> Result<Option<u64>> {
        let mut at = range.start;
        for _ in 0..extents {
            let Some(found) = self.next_extent(inode, at, range.end)? else {
                return Ok(None);
            };
            self.cut(inode, &found, range.clone())?;
            at = found.end();
        }
        Ok((at < range.end).then_some(at))
    }

    /// The first extent that has blocks in `from..end`, as a whole.
    fn next_extent(&mut self, inode: &Inode, mut from: u64, end: u64) -> Result<Option<Extent>> {
        while from < end.min(1 << 32) {
            let run = self.lookup_run(inode, from as u32)?;
            if run.place != Mapping::Hole {
                return self.extent_at(inode, from as u32).map(Some);
            }
            from += u64::from(run.len);
        }
        Ok(None)
    }

    /// The extent that covers `logical`.
    fn extent_at(&mut self, inode: &Inode, logical: u32) -> Result<Extent> {
        let path = self.descend(inode, logical)?;
        let leaf = path
            .last()
            .and_then(|leaf| leaf.index.map(|index| (leaf.block, index)));
        let (block, index) = leaf.ok_or(Corrupt::ExtentTree(inode.number))?;
        self.with_node(inode, block, 0, |node| extent::extent(node, index))
    }

    /// Frees the part of `found` that is in `range`.
    fn cut(&mut self, inode: &mut Inode, found: &Extent, range: Range<u64>) -> Result<()> {
        self.recent.forget(inode.number);
        let first = range.start.max(u64::from(found.logical)) as u32;
        let end = range.end.min(found.end());
        let gone = found.from(first).first((end - u64::from(first)) as u32);
        let before = found.first(first - found.logical);
        let behind = (end < found.end()).then(|| found.from(end as u32));
        match (before.len, behind) {
            (0, None) => self.remove_entry(inode, found.logical)?,
            (0, Some(behind)) => self.replace(inode, found.logical, &behind)?,
            (_, None) => self.replace(inode, found.logical, &before)?,
            (_, Some(behind)) => {
                self.replace(inode, found.logical, &before)?;
                self.insert_extent(inode, &behind)?;
            }
        }
        inode.sectors = inode
            .sectors
            .saturating_sub(u64::from(gone.len) * self.block_sectors());
        self.free(gone.physical, gone.len)?;
        // What directories and links hold went through the log.
        if inode.kind() != Some(FileType::Regular) {
            for block in gone.physical..gone.physical + u64::from(gone.len) {
                self.store.revoke(block);
            }
        }
        Ok(())
    }

    /// The extent that begins at `logical` becomes `with`, which lies inside of it.
    fn replace(&mut self, inode: &mut Inode, logical: u32, with: &Extent) -> Result<()> {
        let path = self.descend(inode, logical)?;
        let leaf = *path.last().ok_or(Corrupt::ExtentTree(inode.number))?;
        let index = leaf.index.ok_or(Corrupt::ExtentTree(inode.number))?;
        self.edit_node(inode, leaf.block, 0, |node| {
            extent::set_extent(node, index, with)
        })?;
        match index == 0 && with.logical != logical {
            true => self.set_keys(inode, &path, with.logical),
            false => Ok(()),
        }
    }

    /// Removes the extent that begins at `logical`, and nodes that are empty then.
    fn remove_entry(&mut self, inode: &mut Inode, logical: u32) -> Result<()> {
        let path = self.descend(inode, logical)?;
        let mut steps = path.as_slice();
        while let Some((step, above)) = steps.split_last() {
            let index = step.index.ok_or(Corrupt::ExtentTree(inode.number))?;
            let first = self.edit_node(inode, step.block, step.depth, |node| {
                extent::remove(node, index);
                (extent::count(node) != 0).then(|| extent::key(node, 0))
            })?;
            match (first, step.block) {
                (Some(first), _) if index == 0 => return self.set_keys(inode, steps, first),
                (Some(_), _) => return Ok(()),
                (None, None) => {
                    extent::set_depth(&mut inode.map, 0);
                    return Ok(());
                }
                (None, Some(block)) => self.free_node(inode, block)?,
            }
            steps = above;
        }
        Ok(())
    }

    fn free_node(&mut self, inode: &mut Inode, block: u64) -> Result<()> {
        inode.sectors = inode.sectors.saturating_sub(self.block_sectors());
        self.free_metadata(block)
    }

    /// `len` blocks from `logical` on, which one reserved extent has, are written now.
    pub(crate) fn mark_written(&mut self, inode: &mut Inode, logical: u32, len: u32) -> Result<()> {
        let found = self.extent_at(inode, logical)?;
        self.recent.forget(inode.number);
        let written = Extent {
            is_unwritten: false,
            ..found.from(logical).first(len)
        };
        let before = found.first(logical - found.logical);
        let behind = (written.end() < found.end()).then(|| found.from(written.end() as u32));
        if before.len == 0 {
            return self.write_front(inode, &written, behind.as_ref());
        }
        self.replace(inode, found.logical, &before)?;
        self.insert_extent(inode, &written)?;
        match behind {
            Some(behind) => self.insert_extent(inode, &behind),
            None => Ok(()),
        }
    }

    /// The front of a reserved extent is written: a written one before it becomes longer, if it can.
    fn write_front(
        &mut self,
        inode: &mut Inode,
        written: &Extent,
        behind: Option<&Extent>,
    ) -> Result<()> {
        let path = self.descend(inode, written.logical)?;
        if let Some(joined) = self.joined_before(inode, &path, written)? {
            match behind {
                Some(behind) => self.replace(inode, written.logical, behind)?,
                None => self.remove_entry(inode, written.logical)?,
            }
            return self.replace(inode, joined.logical, &joined);
        }
        self.replace(inode, written.logical, written)?;
        match behind {
            Some(behind) => self.insert_extent(inode, behind),
            None => Ok(()),
        }
    }

    /// The entry before the path's, if `written` continues it.
    fn joined_before(
        &mut self,
        inode: &Inode,
        path: &[Step],
        written: &Extent,
    ) -> Result<Option<Extent>> {
        let leaf = *path.last().ok_or(Corrupt::ExtentTree(inode.number))?;
        let Some(index) = leaf.index.and_then(|index| index.checked_sub(1)) else {
            return Ok(None);
        };
        let before = self.with_node(inode, leaf.block, 0, |node| extent::extent(node, index))?;
        Ok(before.joined(written))
    }
}
