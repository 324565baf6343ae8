//! Directories: names in blocks, listed and changed.
//!
//! A directory of one block is searched from its beginning; one that outgrows its block becomes
//! indexed (`htree`), unless the image has no such feature. A listing of either goes by the
//! hash of names, not by place: a place changes when a leaf is split, and a listing that goes on
//! meanwhile would miss names. Only a directory of several blocks without an index is listed by
//! place: its entries never move.

use alloc::vec::Vec;

use crate::error::{Corrupt, Error, Result};
use crate::extents::Mapping;
use crate::htree::hash::{Hash, Hasher};
use crate::layout::dirent::{self, NAME_BYTES_MAX, TAIL_BYTES};
use crate::layout::features::COMPAT_DIR_INDEX;
use crate::layout::inode::{FLAG_INDEX, Inode};
use crate::seal::Seal;
use crate::store::Block;
use crate::volume::Volume;

/// Blocks of a directory at most: those that an index can name.
const BLOCKS_MAX: u64 = 1 << 28;

/// Where an entry is, and what it names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    pub(crate) logical: u32,
    pub(crate) at: usize,
    pub(crate) inode: u32,
}

/// A name in a listing.
#[derive(Clone, Copy, Debug)]
pub struct Listed<'a> {
    /// The name.
    pub name: &'a [u8],
    /// What it names.
    pub inode: u32,
    /// `file_type` on the disk: 1 regular, 2 directory, 7 link ...; 0 if unknown.
    pub kind: u8,
    /// The cursor that goes on after it.
    pub next: u64,
}

impl Volume {
    /// A directory's inode.
    pub(crate) fn directory(&mut self, number: u32) -> Result<Inode> {
        let inode = self.inode(number)?;
        let block = self.geometry.block_bytes as u64;
        if !inode.is_directory() {
            return Err(Error::NotDirectory);
        }
        let is_legal =
            inode.size.is_multiple_of(block) && (1..BLOCKS_MAX).contains(&(inode.size / block));
        match is_legal {
            true => Ok(inode),
            false => Err(Corrupt::Directory(number).into()),
        }
    }

    fn directory_blocks(&self, dir: &Inode) -> u32 {
        (dir.size / self.geometry.block_bytes as u64) as u32
    }

    fn is_indexed(&self, dir: &Inode) -> bool {
        dir.has(FLAG_INDEX) && self.geometry.features.has_compat(COMPAT_DIR_INDEX)
    }

    /// Bytes of the checksum at the end of blocks of entries.
    pub(crate) fn entry_tail(&self) -> usize {
        if self.geometry.features.has_checksums() {
            TAIL_BYTES
        } else {
            0
        }
    }

    /// The disk's block of a directory's block.
    pub(crate) fn directory_place(&mut self, dir: &Inode, logical: u32) -> Result<u64> {
        match self.lookup_run(dir, logical)?.place {
            Mapping::Written(block) if logical < self.directory_blocks(dir) => Ok(block),
            _ => Err(Corrupt::Directory(dir.number).into()),
        }
    }

    fn leaf_seal(&self, dir: &Inode) -> Seal {
        let seed = dir.seed(self.geometry.checksum_seed);
        Seal::DirectoryLeaf {
            inode: dir.number,
            seed,
        }
    }

    /// A block of entries.
    pub(crate) fn directory_block(&mut self, dir: &Inode, logical: u32) -> Result<Block> {
        let place = self.directory_place(dir, logical)?;
        let seal = self.leaf_seal(dir);
        self.store.load(place, seal, &self.geometry)
    }

    /// Changes a block of entries.
    pub(crate) fn edit_directory<R>(
        &mut self,
        dir: &Inode,
        logical: u32,
        change: impl FnOnce(&mut [u8]) -> R,
    ) -> Result<R> {
        let place = self.directory_place(dir, logical)?;
        let seal = self.leaf_seal(dir);
        Ok(change(self.store.modify(place, seal, &self.geometry)?))
    }

    /// One more block without entries; returns its number in the directory.
    pub(crate) fn append_directory_block(&mut self, dir: &mut Inode) -> Result<u32> {
        let logical = self.directory_blocks(dir);
        if u64::from(logical) + 1 >= BLOCKS_MAX {
            return Err(Error::NoSpace);
        }
        let new = self.allocate_for(dir, logical, 1)?;
        self.insert_extent(dir, &new)?;
        dir.size += self.geometry.block_bytes as u64;
        let (seal, tail) = (self.leaf_seal(dir), self.entry_tail());
        dirent::init(self.store.create(new.physical, seal)?, tail);
        Ok(logical)
    }

    /// Finds a name; `.` and `..` are names, too.
    pub(crate) fn find(&mut self, dir: &Inode, name: &[u8]) -> Result<Option<Place>> {
        if name.len() > NAME_BYTES_MAX {
            return Err(Error::NameTooLong);
        }
        if !self.is_indexed(dir) {
            return self.find_linear(dir, name);
        }
        if name == b"." || name == b".." {
            let root = self.index_node(dir, 0)?;
            return Ok(find_in(&root, 0, name));
        }
        let hash = self.hasher(dir)?.hash(name).major;
        let mut probe = self.probe(dir, hash)?;
        for _ in 0..self.directory_blocks(dir) {
            let leaf = self.directory_block(dir, probe.leaf)?;
            if let Some(place) = find_in(&leaf, probe.leaf, name) {
                return Ok(Some(place));
            }
            // Names of this hash may go on in the next leaf.
            if self.next_leaf(dir, &mut probe)? != Some(hash | 1) {
                return Ok(None);
            }
        }
        Ok(None)
    }

    fn find_linear(&mut self, dir: &Inode, name: &[u8]) -> Result<Option<Place>> {
        for logical in 0..self.directory_blocks(dir) {
            let block = self.directory_block(dir, logical)?;
            if let Some(place) = find_in(&block, logical, name) {
                return Ok(Some(place));
            }
        }
        Ok(None)
    }

    /// The inode that `name` in the directory `dir` names.
    pub fn lookup(&mut self, dir: u32, name: &[u8]) -> Result<u32> {
        let dir = self.directory(dir)?;
        let place = self.find(&dir, name)?.ok_or(Error::NotFound)?;
        self.check_number(place.inode)?;
        Ok(place.inode)
    }

    /// Adds a name that is not there.
    pub(crate) fn add_entry(
        &mut self,
        dir: &mut Inode,
        name: &[u8],
        inode: u32,
        kind: u8,
    ) -> Result<()> {
        if self.is_indexed(dir) {
            return self.insert_indexed(dir, name, inode, kind);
        }
        let blocks = self.directory_blocks(dir);
        for logical in 0..blocks {
            if self.insert_in_block(dir, logical, name, inode, kind)? {
                return Ok(());
            }
        }
        let can_index = self.geometry.features.has_compat(COMPAT_DIR_INDEX)
            && self.geometry.hash_version <= 2
            && blocks == 1;
        if can_index {
            self.make_indexed(dir)?;
            return self.insert_indexed(dir, name, inode, kind);
        }
        let logical = self.append_directory_block(dir)?;
        match self.insert_in_block(dir, logical, name, inode, kind)? {
            true => Ok(()),
            false => Err(Error::NoSpace),
        }
    }

    /// Adds a name to one block; false if it has no room.
    pub(crate) fn insert_in_block(
        &mut self,
        dir: &Inode,
        logical: u32,
        name: &[u8],
        inode: u32,
        kind: u8,
    ) -> Result<bool> {
        let needed = dirent::needed(name.len());
        let block = self.directory_block(dir, logical)?;
        let end = block.len() - self.entry_tail();
        let found = dirent::entries(&block)
            .filter(|entry| entry.at < end)
            .find(|entry| entry.len - entry.used() >= needed)
            .map(|entry| (entry.at, entry.len, entry.used()));
        let Some((at, len, used)) = found else {
            return Ok(false);
        };
        drop(block);
        self.edit_directory(dir, logical, |block| {
            if used != 0 {
                dirent::set_len(block, at, used);
            }
            dirent::set(block, at + used, len - used, inode, kind, name);
        })?;
        Ok(true)
    }

    /// Removes an entry: its room goes to the one before.
    pub(crate) fn remove_entry_at(&mut self, dir: &Inode, place: Place) -> Result<()> {
        let block = self.directory_block(dir, place.logical)?;
        let before = dirent::entries(&block)
            .take_while(|entry| entry.at < place.at)
            .last();
        let before = before.map(|entry| (entry.at, entry.len));
        let len = dirent::entry(&block, place.at).map_or(0, |entry| entry.len);
        drop(block);
        self.edit_directory(dir, place.logical, |block| match before {
            Some((at, before)) => dirent::set_len(block, at, before + len),
            None => dirent::set(block, place.at, len, 0, 0, b""),
        })
    }

    /// An entry names another inode.
    pub(crate) fn redirect_entry(
        &mut self,
        dir: &Inode,
        place: Place,
        inode: u32,
        kind: u8,
    ) -> Result<()> {
        let change = |block: &mut [u8]| dirent::set_inode(block, place.at, inode, kind);
        if self.is_indexed(dir) && place.logical == 0 {
            let at = self.directory_place(dir, 0)?;
            let seed = dir.seed(self.geometry.checksum_seed);
            let seal = Seal::IndexRoot {
                inode: dir.number,
                seed,
            };
            change(self.store.modify(at, seal, &self.geometry)?);
            return Ok(());
        }
        self.edit_directory(dir, place.logical, change)
    }

    /// Whether a directory has no names but `.` and `..`.
    pub(crate) fn is_empty(&mut self, dir: &Inode) -> Result<bool> {
        let mut is_empty = true;
        self.list_inode(dir, 0, &mut |_| {
            is_empty = false;
            false
        })?;
        Ok(is_empty)
    }

    /// Lists names from `cursor` on (0 at first), without `.` and `..`, until `emit` says no.
    pub fn list(
        &mut self,
        dir: u32,
        cursor: u64,
        emit: &mut dyn FnMut(Listed<'_>) -> bool,
    ) -> Result<()> {
        let dir = self.directory(dir)?;
        self.list_inode(&dir, cursor, emit)
    }

    fn list_inode(
        &mut self,
        dir: &Inode,
        cursor: u64,
        emit: &mut dyn FnMut(Listed<'_>) -> bool,
    ) -> Result<()> {
        if self.is_indexed(dir) {
            return self.list_indexed(dir, cursor, emit);
        }
        if self.directory_blocks(dir) == 1 {
            let geometry = &self.geometry;
            let version = geometry.hash_version.min(2);
            let hasher = Hasher::new(version, geometry.has_unsigned_hash, geometry.hash_seed)?;
            let block = self.directory_block(dir, 0)?;
            emit_sorted(&block, &hasher, cursor, emit);
            return Ok(());
        }
        self.list_linear(dir, cursor, emit)
    }

    fn list_indexed(
        &mut self,
        dir: &Inode,
        cursor: u64,
        emit: &mut dyn FnMut(Listed<'_>) -> bool,
    ) -> Result<()> {
        let hasher = self.hasher(dir)?;
        let mut probe = self.probe(dir, hash_of(cursor).major)?;
        for _ in 0..self.directory_blocks(dir) {
            let leaf = self.directory_block(dir, probe.leaf)?;
            if !emit_sorted(&leaf, &hasher, cursor, emit)
                || self.next_leaf(dir, &mut probe)?.is_none()
            {
                break;
            }
        }
        Ok(())
    }

    fn list_linear(
        &mut self,
        dir: &Inode,
        cursor: u64,
        emit: &mut dyn FnMut(Listed<'_>) -> bool,
    ) -> Result<()> {
        let each = self.geometry.block_bytes as u64;
        let first = u32::try_from(cursor / each).unwrap_or(u32::MAX);
        for logical in first..self.directory_blocks(dir) {
            let block = self.directory_block(dir, logical)?;
            let start = u64::from(logical) * each;
            for entry in dirent::entries(&block).filter(|entry| is_listed(entry)) {
                let next = start + (entry.at + entry.len) as u64;
                let listed = Listed {
                    name: entry.name,
                    inode: entry.inode,
                    kind: entry.kind,
                    next,
                };
                if start + entry.at as u64 >= cursor && !emit(listed) {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

fn is_listed(entry: &dirent::Entry<'_>) -> bool {
    entry.inode != 0 && entry.name != b"." && entry.name != b".."
}

fn find_in(block: &[u8], logical: u32, name: &[u8]) -> Option<Place> {
    let found = dirent::entries(block).find(|entry| entry.inode != 0 && entry.name == name)?;
    Some(Place {
        logical,
        at: found.at,
        inode: found.inode,
    })
}

/// Where a listing by hash goes on.
fn hash_of(cursor: u64) -> Hash {
    Hash {
        major: (cursor >> 32) as u32,
        minor: cursor as u32,
    }
}

/// Hands out the names of a block in the order of their hashes; false if `emit` had enough.
fn emit_sorted(
    block: &[u8],
    hasher: &Hasher,
    cursor: u64,
    emit: &mut dyn FnMut(Listed<'_>) -> bool,
) -> bool {
    let mut all: Vec<(Hash, dirent::Entry<'_>)> = dirent::entries(block)
        .filter(is_listed)
        .map(|entry| (hasher.hash(entry.name), entry))
        .filter(|(hash, _)| *hash >= hash_of(cursor))
        .collect();
    all.sort_by_key(|(hash, _)| *hash);
    all.iter().all(|(hash, entry)| {
        let next = (u64::from(hash.major) << 32 | u64::from(hash.minor)) + 1;
        emit(Listed {
            name: entry.name,
            inode: entry.inode,
            kind: entry.kind,
            next,
        })
    })
}
