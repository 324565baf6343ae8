//! From a block of a file to a block of the disk.

use alloc::vec::Vec;

use crate::error::{Corrupt, Error, Result};
use crate::layout::extent::{self, DEPTH_MAX, Extent};
use crate::layout::inode::{FLAG_EXTENTS, Inode};
use crate::seal::Seal;
use crate::volume::Volume;

/// Blocks of a file that are alike.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Run {
    /// The first block of the file.
    pub logical: u32,
    /// How many.
    pub len: u32,
    /// Where they are.
    pub place: Mapping,
}

/// Where blocks of a file are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mapping {
    /// Nowhere: they read as zeroes.
    Hole,
    /// Reserved from this block of the disk on; they read as zeroes.
    Unwritten(u64),
    /// From this block of the disk on.
    Written(u64),
}

/// A node on the way to a leaf.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    /// Its block; `None` for the root in the inode.
    pub(super) block: Option<u64>,
    pub(super) depth: u16,
    /// The last entry that begins at or before what is looked for.
    pub(super) index: Option<usize>,
    pub(super) count: usize,
    pub(super) is_full: bool,
}

impl Volume {
    fn node_seal(&self, inode: &Inode, depth: u16) -> Seal {
        let seed = inode.seed(self.geometry.checksum_seed);
        Seal::ExtentNode {
            inode: inode.number,
            seed,
            depth,
        }
    }

    /// Calls `look` with the bytes of a node.
    pub(super) fn with_node<R>(
        &mut self,
        inode: &Inode,
        block: Option<u64>,
        depth: u16,
        look: impl FnOnce(&[u8]) -> R,
    ) -> Result<R> {
        let Some(block) = block else {
            return Ok(look(&inode.map));
        };
        let seal = self.node_seal(inode, depth);
        let bytes = self.store.load(block, seal, &self.geometry)?;
        Ok(look(&bytes))
    }

    /// Calls `change` with the bytes of a node.
    pub(super) fn edit_node<R>(
        &mut self,
        inode: &mut Inode,
        block: Option<u64>,
        depth: u16,
        change: impl FnOnce(&mut [u8]) -> R,
    ) -> Result<R> {
        let Some(block) = block else {
            return Ok(change(&mut inode.map));
        };
        let seal = self.node_seal(inode, depth);
        let bytes = self.store.modify(block, seal, &self.geometry)?;
        Ok(change(bytes))
    }

    /// A new empty node.
    pub(super) fn new_node(&mut self, inode: &mut Inode, depth: u16) -> Result<u64> {
        let goal = self.goal_of(inode);
        let (block, _) = self.allocate(goal, 1)?;
        inode.sectors += self.block_sectors();
        let seal = self.node_seal(inode, depth);
        let room = self.geometry.block_bytes;
        let bytes = self.store.create(block, seal)?;
        extent::init(bytes, depth, room);
        Ok(block)
    }

    /// The root's depth, if the inode has a tree at all.
    pub(super) fn root_depth(&self, inode: &Inode) -> Result<u16> {
        if !inode.has(FLAG_EXTENTS) {
            return Err(Error::Unsupported);
        }
        let depth = extent::depth(&inode.map);
        match extent::check(&inode.map, depth, self.geometry.blocks) {
            true => Ok(depth),
            false => Err(Corrupt::ExtentTree(inode.number).into()),
        }
    }

    /// The nodes from the root to the leaf where `logical` is or belongs.
    pub(super) fn descend(&mut self, inode: &Inode, logical: u32) -> Result<Vec<Step>> {
        let mut steps = Vec::with_capacity(usize::from(DEPTH_MAX) + 1);
        let mut depth = self.root_depth(inode)?;
        let (mut block, mut bounds) = (None, (0, u64::from(u32::MAX)));
        loop {
            let (step, child) = self
                .with_node(inode, block, depth, |node| {
                    let index = extent::position(node, logical);
                    let (count, is_full) = (extent::count(node), extent::is_full(node));
                    let child = extent::child(node, index.unwrap_or(0));
                    let step = Step {
                        block,
                        depth,
                        index,
                        count,
                        is_full,
                    };
                    is_within(node, &mut bounds, index).then_some((step, child))
                })?
                .ok_or(Corrupt::ExtentTree(inode.number))?;
            steps.push(step);
            if depth == 0 {
                return Ok(steps);
            }
            depth -= 1;
            block = Some(child);
        }
    }

    /// Where `logical` is, and how far that goes on.
    pub(crate) fn lookup_run(&mut self, inode: &Inode, logical: u32) -> Result<Run> {
        if let Some(extent) = self.recent.get(inode.number, logical) {
            return Ok(run(&extent));
        }
        let mut depth = self.root_depth(inode)?;
        let (mut block, mut bounds) = (None, (0, u64::from(u32::MAX)));
        loop {
            let seen = self.with_node(inode, block, depth, |node| {
                let index = extent::position(node, logical);
                let found = index.map(|index| extent::extent(node, index));
                let child = extent::child(node, index.unwrap_or(0));
                is_within(node, &mut bounds, index).then_some((found, child))
            })?;
            let (found, child) = seen.ok_or(Corrupt::ExtentTree(inode.number))?;
            if depth == 0 {
                return Ok(self.run_at(inode, logical, found, bounds.1));
            }
            block = Some(child);
            depth -= 1;
        }
    }

    fn run_at(&mut self, inode: &Inode, logical: u32, found: Option<Extent>, next: u64) -> Run {
        match found.filter(|extent| u64::from(logical) < extent.end()) {
            Some(extent) => {
                self.recent.put(inode.number, extent);
                run(&extent.from(logical))
            }
            None => Run {
                logical,
                len: next.saturating_sub(u64::from(logical)).max(1) as u32,
                place: Mapping::Hole,
            },
        }
    }

    /// All extents of a file; for the journal's own.
    pub(crate) fn extents(&mut self, inode: &Inode) -> Result<Vec<Extent>> {
        let mut found = Vec::new();
        let blocks = inode.size.div_ceil(self.geometry.block_bytes as u64);
        let mut at = 0u64;
        while at < blocks {
            let run = self.lookup_run(inode, at as u32)?;
            let Mapping::Written(physical) = run.place else {
                return Err(Corrupt::ExtentTree(inode.number).into());
            };
            let Run { logical, len, .. } = run;
            found.push(Extent {
                logical,
                len,
                physical,
                is_unwritten: false,
            });
            at += u64::from(len);
        }
        Ok(found)
    }

    /// Where block `logical` of a file is, and how far that goes on: what a page cache needs to
    /// move the data by itself.
    pub fn map(&mut self, number: u32, logical: u32) -> Result<Run> {
        let inode = self.inode(number)?;
        self.lookup_run(&inode, logical)
    }
}

fn run(extent: &Extent) -> Run {
    let place = match extent.is_unwritten {
        true => Mapping::Unwritten(extent.physical),
        false => Mapping::Written(extent.physical),
    };
    Run {
        logical: extent.logical,
        len: extent.len,
        place,
    }
}

/// Whether the keys of a node are in the bounds that its parents set; narrows them to those of
/// what is below entry `index`.
fn is_within(node: &[u8], bounds: &mut (u64, u64), index: Option<usize>) -> bool {
    let count = extent::count(node);
    let key = |index: usize| u64::from(extent::key(node, index));
    let is_right = count == 0 || (key(0) >= bounds.0 && key(count - 1) < bounds.1);
    if let Some(index) = index {
        bounds.0 = key(index);
    }
    let behind = match index {
        // What is looked for is before all keys; the way goes on to the first child.
        None if extent::depth(node) == 0 => 0,
        _ => index.unwrap_or(0) + 1,
    };
    if behind < count {
        bounds.1 = key(behind);
    }
    is_right
}
