//! Blocks of metadata in memory, and the transaction that changes them.
//!
//! # Problem
//! An operation changes several blocks, and either all or none of the changes may reach the disk,
//! whatever fails and whenever the power does.
//!
//! # Idea
//! As jbd2: changes belong to the *running* transaction, operations enter it by a *handle*. Beyond
//! jbd2, a handle can be undone ([`handle`]). What the running transaction becomes is in [`running`].
//!
//! # Invariants
//! - **Cached is checked**: a block in the cache passed its seal's check, or was made by us.
//! - **Changes are owned**: a block that differs from the disk is in the running transaction or
//!   waits for a checkpoint, and is not evicted.
//! - **Revoked after commit**: a freed block stays in the cache, and among those that wait for a
//!   checkpoint, until the transaction that freed it is committed.
//!
//! Not here: the log's format (`journal`), checksums (`seal`).

mod handle;
mod running;

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

use checksum::Crc32c;

use self::handle::Undo;
use self::running::Running;
pub(crate) use self::running::Sealed;
use crate::device::{Device, Durability};
use crate::error::{Corrupt, Error, Result};
use crate::layout::superblock::Geometry;
use crate::seal::Seal;
use crate::sums::BlockSum;

/// A block's bytes, shared until somebody changes them.
pub(crate) type Block = Arc<Vec<u8>>;

/// Clean blocks that are kept.
const CLEAN_MAX: usize = 4096;

#[derive(Clone, Debug)]
struct Buffer {
    data: Block,
    seal: Seal,
    marks: Marks,
    awaits_checkpoint: bool,
    used: u64,
}

/// What changes with a block's bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Marks {
    /// Of the data, if they were summed and nobody has changed them but by parts since.
    sum: Option<BlockSum>,
    /// Inodes or descriptors, by their place in the block, that changed since the last commit.
    touched: u64,
    /// Inodes whose checksum was found right.
    verified: u64,
    is_running: bool,
}

impl Buffer {
    /// The sum of the data, to which all changes have been made.
    fn summed(&mut self, sums: Crc32c) -> BlockSum {
        let mut sum = match self.marks.sum {
            Some(sum) => sum,
            None => BlockSum::of(sums, &self.data),
        };
        sum.close(sums, &self.data);
        debug_assert_eq!(
            sum,
            BlockSum::of(sums, &self.data),
            "only open parts were changed"
        );
        *self.marks.sum.insert(sum)
    }
}

/// All blocks of metadata.
pub(crate) struct Store {
    pub(crate) device: Box<dyn Device>,
    block_bytes: usize,
    blocks: u64,
    sums: Crc32c,
    buffers: BTreeMap<u64, Buffer>,
    clean: usize,
    clock: u64,
    running: Running,
    handle: Option<Undo>,
    /// Blocks that a transaction may have; more is refused and undone.
    pub(crate) running_max: usize,
}

impl Store {
    pub(crate) fn new(device: Box<dyn Device>, geometry: &Geometry) -> Self {
        Self {
            device,
            block_bytes: geometry.block_bytes,
            blocks: geometry.blocks,
            sums: geometry.sums_begin,
            buffers: BTreeMap::new(),
            clean: 0,
            clock: 0,
            running: Running::default(),
            handle: None,
            running_max: 1024,
        }
    }

    pub(crate) fn offset(&self, block: u64) -> Result<u64> {
        if block >= self.blocks {
            return Err(Corrupt::BlockNumber(block).into());
        }
        Ok(block * self.block_bytes as u64)
    }

    /// Reads blocks past the cache: file data, and the log.
    pub(crate) fn read_data(&mut self, block: u64, within: u64, into: &mut [u8]) -> Result<()> {
        let last = block
            + (within + into.len() as u64)
                .div_ceil(self.block_bytes as u64)
                .max(1)
            - 1;
        self.offset(last)?;
        let at = self.offset(block)? + within;
        Ok(self.device.read(at, into)?)
    }

    /// Writes blocks past the cache: file data, and the log.
    pub(crate) fn write_data(
        &mut self,
        block: u64,
        from: &[u8],
        durability: Durability,
    ) -> Result<()> {
        let count = from.len().div_ceil(self.block_bytes).max(1) as u64;
        self.offset(block + count - 1)?;
        let at = self.offset(block)?;
        Ok(self.device.write(at, from, durability)?)
    }

    /// The same of blocks that lie one behind the other from `block` on.
    pub(crate) fn write_blocks(&mut self, block: u64, from: &[Block]) -> Result<()> {
        let Some(before_last) = from.len().checked_sub(1) else {
            return Ok(());
        };
        self.offset(block + before_last as u64)?;
        let at = self.offset(block)?;
        let mut parts: Vec<&[u8]> = Vec::new();
        let room = parts.try_reserve_exact(from.len());
        room.map_err(|_| Error::OutOfMemory)?;
        parts.extend(from.iter().map(|block| block.as_slice()));
        Ok(self.device.write_parts(at, &parts, Durability::Volatile)?)
    }

    /// The block `number`, which must be what `seal` says.
    pub(crate) fn load(&mut self, number: u64, seal: Seal, geometry: &Geometry) -> Result<Block> {
        self.clock += 1;
        if let Some(buffer) = self.buffers.get_mut(&number) {
            buffer.used = self.clock;
            if buffer.seal == seal {
                return Ok(buffer.data.clone());
            }
            return Err(Corrupt::BlockNumber(number).into());
        }
        let offset = self.offset(number)?;
        let mut bytes = self.zeroed()?;
        self.device.read(offset, &mut bytes)?;
        seal.check(number, &bytes, geometry)?;
        self.evict();
        Ok(self.keep(number, seal, bytes))
    }

    /// Puts a block into the cache that was computed and not read.
    pub(crate) fn keep(&mut self, number: u64, seal: Seal, bytes: Vec<u8>) -> Block {
        let data = Arc::new(bytes);
        let buffer = Buffer {
            data: data.clone(),
            seal,
            marks: Marks::default(),
            awaits_checkpoint: false,
            used: self.clock,
        };
        self.buffers.insert(number, buffer);
        self.clean += 1;
        data
    }

    /// The same of a block that nobody may have taken for something else.
    pub(crate) fn keep_new(&mut self, number: u64, seal: Seal, bytes: Vec<u8>) -> Result<Block> {
        match self.buffers.contains_key(&number) {
            true => Err(Corrupt::BlockNumber(number).into()),
            false => Ok(self.keep(number, seal, bytes)),
        }
    }

    /// The block `number`, if it is in the cache as what `seal` says.
    pub(crate) fn cached(&self, number: u64, seal: Seal) -> Option<Block> {
        let buffer = self.buffers.get(&number)?;
        (buffer.seal == seal).then(|| buffer.data.clone())
    }

    /// Drops a clean block.
    pub(crate) fn forget(&mut self, number: u64) {
        let is_clean = |buffer: &Buffer| !buffer.marks.is_running && !buffer.awaits_checkpoint;
        if self.buffers.get(&number).is_some_and(is_clean) {
            self.buffers.remove(&number);
        }
    }

    /// Drops everything, as nothing is changed yet.
    pub(crate) fn forget_all(&mut self) {
        self.buffers.clear();
        self.clean = 0;
    }

    /// A block of zeroes.
    pub(crate) fn zeroed(&self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let room = bytes.try_reserve_exact(self.block_bytes);
        room.map_err(|_| Error::OutOfMemory)?;
        bytes.resize(self.block_bytes, 0);
        Ok(bytes)
    }

    /// Drops the older half of the clean blocks when there are many.
    fn evict(&mut self) {
        if self.clean < CLEAN_MAX {
            return;
        }
        let is_clean = |buffer: &Buffer| !buffer.marks.is_running && !buffer.awaits_checkpoint;
        let mut ages: Vec<u64> = Vec::new();
        ages.extend(
            self.buffers
                .values()
                .filter(|b| is_clean(b))
                .map(|b| b.used),
        );
        let middle = ages.len() / 2;
        let limit = match ages.is_empty() {
            true => 0,
            false => *ages.select_nth_unstable(middle).1,
        };
        self.buffers
            .retain(|_, buffer| !is_clean(buffer) || buffer.used > limit);
        self.clean = self.buffers.values().filter(|b| is_clean(b)).count();
    }

    /// Changes what a block that is being changed is taken for.
    pub(crate) fn set_seal(&mut self, number: u64, seal: Seal) {
        if let Some(buffer) = self.buffers.get_mut(&number) {
            buffer.seal = seal;
        }
    }

    /// Remembers that the inode or descriptor at `place` of a block has changed.
    pub(crate) fn touch(&mut self, number: u64, place: usize) {
        if let Some(buffer) = self.buffers.get_mut(&number) {
            buffer.marks.touched |= 1 << (place & 63);
            buffer.marks.verified |= 1 << (place & 63);
        }
    }

    /// Whether the inode at `place` of a block still has to be checked.
    pub(crate) fn is_unverified(&self, number: u64, place: usize) -> bool {
        let buffer = self.buffers.get(&number);
        buffer.is_some_and(|buffer| buffer.marks.verified >> (place & 63) & 1 == 0)
    }

    /// Remembers that the inode at `place` of a block was checked.
    pub(crate) fn set_verified(&mut self, number: u64, place: usize) {
        if let Some(buffer) = self.buffers.get_mut(&number) {
            buffer.marks.verified |= 1 << (place & 63);
        }
    }
}
