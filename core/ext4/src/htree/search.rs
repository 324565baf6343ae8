//! From a hash to the leaf of its names.

use alloc::vec::Vec;

use super::hash::Hasher;
use crate::error::{Corrupt, Result};
use crate::layout::index::{self as node, LEVELS_MAX};
use crate::layout::inode::Inode;
use crate::seal::Seal;
use crate::store::Block;
use crate::volume::Volume;

/// A node on the way to a leaf.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    /// The block of the directory, 0 for the root.
    pub(super) logical: u32,
    /// The pair that was taken.
    pub(super) index: usize,
    pub(super) count: usize,
    pub(super) is_full: bool,
}

/// A way from the root to a leaf.
#[derive(Clone, Debug)]
pub(crate) struct Probe {
    pub(super) frames: Vec<Frame>,
    /// The leaf's block of the directory.
    pub(crate) leaf: u32,
}

impl Volume {
    /// A block of the index.
    pub(crate) fn index_node(&mut self, dir: &Inode, logical: u32) -> Result<Block> {
        let place = self.directory_place(dir, logical)?;
        let seal = self.index_seal(dir, logical);
        self.store.load(place, seal, &self.geometry)
    }

    pub(super) fn index_seal(&self, dir: &Inode, logical: u32) -> Seal {
        let (inode, seed) = (dir.number, dir.seed(self.geometry.checksum_seed));
        match logical {
            0 => Seal::IndexRoot { inode, seed },
            _ => Seal::IndexNode { inode, seed },
        }
    }

    /// How names of an indexed directory are hashed.
    pub(crate) fn hasher(&mut self, dir: &Inode) -> Result<Hasher> {
        let root = self.index_node(dir, 0)?;
        let geometry = &self.geometry;
        Hasher::new(
            node::hash_version(&root),
            geometry.has_unsigned_hash,
            geometry.hash_seed,
        )
    }

    /// The way to the leaf where names of this hash begin.
    pub(crate) fn probe(&mut self, dir: &Inode, hash: u32) -> Result<Probe> {
        let root = self.index_node(dir, 0)?;
        let levels = node::levels(&root).min(LEVELS_MAX);
        drop(root);
        let mut frames = Vec::with_capacity(usize::from(levels) + 1);
        let mut logical = 0;
        for _ in 0..=levels {
            let bytes = self.index_node(dir, logical)?;
            let index = node::position(&bytes, hash);
            let (count, is_full) = (node::count(&bytes), node::is_full(&bytes));
            frames.push(Frame {
                logical,
                index,
                count,
                is_full,
            });
            logical = node::block(&bytes, index);
        }
        self.check_leaf(dir, logical)?;
        Ok(Probe {
            frames,
            leaf: logical,
        })
    }

    fn check_leaf(&self, dir: &Inode, logical: u32) -> Result<(), Corrupt> {
        match logical {
            0 => Err(Corrupt::Directory(dir.number)),
            _ => Ok(()),
        }
    }

    /// Goes on to the next leaf; returns its lowest hash, whose lowest bit says that names of the
    /// hash before go on there.
    pub(crate) fn next_leaf(&mut self, dir: &Inode, probe: &mut Probe) -> Result<Option<u32>> {
        let has_more = |frame: &Frame| frame.index + 1 < frame.count;
        let Some(at) = probe.frames.iter().rposition(has_more) else {
            return Ok(None);
        };
        let levels = probe.frames.len();
        probe.frames.truncate(at + 1);
        let mut lowest = 0;
        if let Some(frame) = probe.frames.last_mut() {
            frame.index += 1;
            let (logical, index) = (frame.logical, frame.index);
            let bytes = self.index_node(dir, logical)?;
            lowest = node::hash(&bytes, index);
            probe.leaf = node::block(&bytes, index);
        }
        while probe.frames.len() < levels {
            let logical = probe.leaf;
            let bytes = self.index_node(dir, logical)?;
            let (count, is_full) = (node::count(&bytes), node::is_full(&bytes));
            probe.frames.push(Frame {
                logical,
                index: 0,
                count,
                is_full,
            });
            probe.leaf = node::block(&bytes, 0);
        }
        self.check_leaf(dir, probe.leaf)?;
        Ok(Some(lowest))
    }
}
