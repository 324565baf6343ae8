//! Adding a name to an indexed directory, and indexing one that has outgrown its block.

use alloc::vec::Vec;

use super::hash::{Hash, Hasher};
use super::search::Probe;
use crate::error::{Corrupt, Error, Result};
use crate::layout::dirent;
use crate::layout::index::{self as node, LEVELS_MAX};
use crate::layout::inode::{FLAG_INDEX, Inode};
use crate::volume::Volume;

/// Ways from the root until there is room: a split for each level, and a new root.
const ATTEMPTS_MAX: usize = 2 * LEVELS_MAX as usize + 4;

/// An entry on its way from a block to another.
struct Moved {
    hash: Hash,
    inode: u32,
    kind: u8,
    name: Vec<u8>,
}

impl Volume {
    /// Adds a name that is not there to an indexed directory.
    pub(crate) fn insert_indexed(
        &mut self,
        dir: &mut Inode,
        name: &[u8],
        inode: u32,
        kind: u8,
    ) -> Result<()> {
        let hasher = self.hasher(dir)?;
        let hash = hasher.hash(name);
        for _ in 0..ATTEMPTS_MAX {
            let probe = self.probe(dir, hash.major)?;
            if self.insert_in_block(dir, probe.leaf, name, inode, kind)? {
                return Ok(());
            }
            self.make_index_room(dir, &probe, &hasher)?;
        }
        Err(Error::NoSpace)
    }

    /// Splits the leaf, or the highest of the full nodes above it.
    fn make_index_room(&mut self, dir: &mut Inode, probe: &Probe, hasher: &Hasher) -> Result<()> {
        match probe.frames.iter().rposition(|frame| !frame.is_full) {
            None => self.grow_index(dir),
            Some(at) if at + 1 == probe.frames.len() => self.split_leaf(dir, probe, hasher),
            Some(at) => self.split_index(dir, probe, at),
        }
    }

    /// The root's pairs go to a node below it.
    fn grow_index(&mut self, dir: &mut Inode) -> Result<()> {
        let root = self.index_node(dir, 0)?;
        let levels = node::levels(&root);
        let max = self.index_levels_max();
        if levels >= max {
            return Err(Error::NoSpace);
        }
        drop(root);
        let new = self.new_index_node(dir)?;
        let pairs = self.edit_index(dir, 0, |root| {
            let pairs = node::split_off(root, 0);
            node::set_levels(root, levels + 1);
            node::fill(root, &[&[0; 4][..], &new.to_le_bytes()].concat());
            pairs
        })?;
        self.edit_index(dir, new, |bytes| node::fill(bytes, &pairs))
    }

    fn split_index(&mut self, dir: &mut Inode, probe: &Probe, parent: usize) -> Result<()> {
        let (Some(parent), Some(full)) = (probe.frames.get(parent), probe.frames.get(parent + 1))
        else {
            return Err(Corrupt::Directory(dir.number).into());
        };
        let new = self.new_index_node(dir)?;
        let (hash, pairs) = self.edit_index(dir, full.logical, |bytes| {
            let middle = node::count(bytes) / 2;
            (node::hash(bytes, middle), node::split_off(bytes, middle))
        })?;
        self.edit_index(dir, new, |bytes| node::fill(bytes, &pairs))?;
        self.edit_index(dir, parent.logical, |bytes| {
            node::insert(bytes, parent.index + 1, hash, new);
        })
    }

    /// Moves the upper half of a leaf's hashes to a new one.
    fn split_leaf(&mut self, dir: &mut Inode, probe: &Probe, hasher: &Hasher) -> Result<()> {
        let mut all = self.take_entries(dir, probe.leaf, hasher)?;
        if all.len() < 2 {
            return Err(Error::NoSpace);
        }
        let middle = split_point(&all);
        let upper = all.split_off(middle);
        let boundary = upper.first().map_or(0, |entry| entry.hash.major);
        let goes_on = all.last().is_some_and(|last| last.hash.major == boundary);
        let new = self.append_directory_block(dir)?;
        self.refill(dir, probe.leaf, &all)?;
        self.refill(dir, new, &upper)?;
        let parent = *probe.frames.last().ok_or(Corrupt::Directory(dir.number))?;
        self.edit_index(dir, parent.logical, |bytes| {
            node::insert(bytes, parent.index + 1, boundary + u32::from(goes_on), new);
        })
    }

    /// The entries of a leaf, sorted by hash.
    fn take_entries(&mut self, dir: &Inode, logical: u32, hasher: &Hasher) -> Result<Vec<Moved>> {
        let block = self.directory_block(dir, logical)?;
        let used = dirent::entries(&block).filter(|entry| entry.inode != 0);
        let mut all: Vec<Moved> = used
            .map(|entry| Moved {
                hash: hasher.hash(entry.name),
                inode: entry.inode,
                kind: entry.kind,
                name: entry.name.to_vec(),
            })
            .collect();
        all.sort_by_key(|entry| entry.hash);
        Ok(all)
    }

    /// Fills a leaf with these entries.
    fn refill(&mut self, dir: &Inode, logical: u32, entries: &[Moved]) -> Result<()> {
        let tail = self.entry_tail();
        self.edit_directory(dir, logical, |block| {
            let end = block.len() - tail;
            dirent::init(block, tail);
            let mut at = 0;
            for (index, entry) in entries.iter().enumerate() {
                let needed = dirent::needed(entry.name.len());
                let len = if index + 1 == entries.len() {
                    end - at
                } else {
                    needed
                };
                dirent::set(block, at, len, entry.inode, entry.kind, &entry.name);
                at += needed;
            }
        })
    }

    /// A directory of one block, which is full, becomes an indexed one.
    pub(crate) fn make_indexed(&mut self, dir: &mut Inode) -> Result<()> {
        let first = self.directory_block(dir, 0)?;
        let old: Vec<(u32, u8, Vec<u8>)> = dirent::entries(&first)
            .filter(|entry| entry.inode != 0)
            .map(|entry| (entry.inode, entry.kind, entry.name.to_vec()))
            .collect();
        drop(first);
        let is_usual = old.first().is_some_and(|(_, _, name)| name == b".")
            && old.get(1).is_some_and(|(_, _, name)| name == b"..");
        if !is_usual {
            return Err(Corrupt::Directory(dir.number).into());
        }
        let leaf = self.append_directory_block(dir)?;
        let geometry = &self.geometry;
        let version = geometry.hash_version;
        let hasher = Hasher::new(version, geometry.has_unsigned_hash, geometry.hash_seed)?;
        let moved: Vec<Moved> = old
            .iter()
            .skip(2)
            .map(|(inode, kind, name)| Moved {
                hash: hasher.hash(name),
                inode: *inode,
                kind: *kind,
                name: name.clone(),
            })
            .collect();
        self.refill(dir, leaf, &moved)?;
        self.make_root(dir, version, leaf)?;
        dir.flags |= FLAG_INDEX;
        Ok(())
    }

    fn make_root(&mut self, dir: &Inode, version: u8, leaf: u32) -> Result<()> {
        let tail = self.entry_tail();
        self.edit_directory(dir, 0, |root| {
            // What was behind `..` is in the leaf now.
            let len = root.len();
            crate::bytes::zero(root, 24, len - 24);
            node::init_root(root, version, leaf, tail);
        })?;
        let place = self.directory_place(dir, 0)?;
        let seal = self.index_seal(dir, 0);
        self.store.set_seal(place, seal);
        Ok(())
    }

    fn new_index_node(&mut self, dir: &mut Inode) -> Result<u32> {
        let new = self.append_directory_block(dir)?;
        let tail = self.entry_tail();
        self.edit_directory(dir, new, |bytes| {
            bytes.fill(0);
            node::init(bytes, tail);
        })?;
        let place = self.directory_place(dir, new)?;
        let seal = self.index_seal(dir, new);
        self.store.set_seal(place, seal);
        Ok(new)
    }

    fn edit_index<R>(
        &mut self,
        dir: &Inode,
        logical: u32,
        change: impl FnOnce(&mut [u8]) -> R,
    ) -> Result<R> {
        let place = self.directory_place(dir, logical)?;
        let seal = self.index_seal(dir, logical);
        Ok(change(self.store.modify(place, seal, &self.geometry)?))
    }

    fn index_levels_max(&self) -> u8 {
        if self.geometry.features.has_incompat(0x4000) {
            LEVELS_MAX
        } else {
            1
        }
    }
}

/// Where to split sorted entries: in the middle of their bytes.
fn split_point(all: &[Moved]) -> usize {
    let bytes = |entry: &Moved| dirent::needed(entry.name.len());
    let total: usize = all.iter().map(bytes).sum();
    let mut below = 0;
    let fits = |entry: &&Moved| {
        below += bytes(entry);
        below <= total / 2
    };
    all.iter()
        .take_while(fits)
        .count()
        .clamp(1, all.len().saturating_sub(1).max(1))
}
