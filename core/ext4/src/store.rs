//! Blocks of metadata in memory, and the transaction that changes them.
//!
//! # Problem
//! An operation changes several blocks, and either all or none of the changes may reach the disk,
//! whatever fails and whenever the power does.
//!
//! # Idea
//! As jbd2: changes belong to the *running* transaction, operations enter it by a *handle*. Beyond
//! jbd2, a handle can be undone: before it changes a block for the first time, or a part of one, it keeps that as
//! it was, so that an operation that fails half-way (disk full, tree damaged) leaves no trace.
//! Blocks are shared copy-on-write, so that keeping one costs a copy only once it is changed. Of a block of which a
//! part is changed ([`Store::modify_part`]) only that is kept.
//!
//! # Invariants
//! - **Cached is checked**: a block in the cache passed its seal's check, or was made by us.
//! - **Changes are owned**: a block that differs from the disk is in the running transaction or
//!   waits for a checkpoint, and is not evicted.
//! - **Revoked after commit**: a freed block stays in the cache, and among those that wait for a
//!   checkpoint, until the transaction that freed it is committed.
//!
//! Not here: the log's format (`journal`), checksums (`seal`).

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use checksum::Crc32c;

use crate::bytes::{put, span};
use crate::device::{Device, Durability};
use crate::error::{Corrupt, Error, Result};
use crate::layout::superblock::Geometry;
use crate::seal::{Context, Seal};
use crate::sums::BlockSum;

/// A block's bytes, shared until somebody changes them.
pub(crate) type Block = Arc<Vec<u8>>;

/// Clean blocks that are kept.
const CLEAN_MAX: usize = 4096;
/// Blocks that one device write moves at most when neighbours are joined.
const JOINED_MAX: usize = 64;

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

/// A block as a commit writes it.
#[derive(Clone, Debug)]
pub(crate) struct Sealed {
    pub(crate) number: u64,
    pub(crate) data: Block,
    /// Of the data, where the image has sums.
    pub(crate) sum: Option<BlockSum>,
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

/// The running transaction.
#[derive(Debug, Default)]
struct Running {
    blocks: BTreeSet<u64>,
    revoked: Vec<u64>,
}

/// What undoes a handle.
#[derive(Debug, Default)]
struct Undo {
    /// Blocks that are changed in ways that nobody tells, before the first of these changes.
    before: BTreeMap<u64, Option<Buffer>>,
    /// Parts of others, before each of their changes.
    parts: Vec<Part>,
    revoked: usize,
    /// It will not be undone, so nothing is kept.
    is_final: bool,
}

/// Some bytes of a block before they were changed.
#[derive(Debug)]
struct Part {
    number: u64,
    at: usize,
    bytes: Vec<u8>,
    marks: Marks,
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

    /// Begins a handle.
    pub(crate) fn begin(&mut self) {
        self.handle = Some(Undo {
            revoked: self.running.revoked.len(),
            ..Undo::default()
        });
    }

    /// Begins a handle that is only finished: where it fails, nothing is changed any more.
    pub(crate) fn begin_final(&mut self) {
        self.handle = Some(Undo {
            is_final: true,
            ..Undo::default()
        });
    }

    /// Keeps the changes of the handle.
    pub(crate) fn finish(&mut self) {
        self.handle = None;
    }

    /// Undoes the changes of the handle.
    pub(crate) fn undo(&mut self) {
        let Some(undo) = self.handle.take() else {
            return;
        };
        if planted::is("an operation that failed is not undone") {
            return;
        }
        for (number, before) in undo.before {
            let was_running = (before.as_ref()).is_some_and(|buffer| buffer.marks.is_running);
            self.set_running(number, was_running);
            match before {
                Some(buffer) => self.buffers.insert(number, buffer),
                None => self.buffers.remove(&number),
            };
        }
        // Those of a block that was kept as a whole were changed before that.
        for part in undo.parts.into_iter().rev() {
            self.set_running(part.number, part.marks.is_running);
            if let Some(buffer) = self.buffers.get_mut(&part.number) {
                let bytes: &mut Vec<u8> = Arc::make_mut(&mut buffer.data);
                put(bytes, part.at, &part.bytes);
                buffer.marks = part.marks;
            }
        }
        self.running.revoked.truncate(undo.revoked);
    }

    fn set_running(&mut self, number: u64, is_running: bool) {
        match is_running {
            true => self.running.blocks.insert(number),
            false => self.running.blocks.remove(&number),
        };
    }

    /// Keeps a block as it is, should the handle be undone.
    fn save(&mut self, number: u64) -> Result<()> {
        let handle = self.handle.as_mut().ok_or(Error::Invalid)?;
        if !handle.is_final {
            let (before, buffers) = (handle.before.entry(number), &self.buffers);
            before.or_insert_with(|| buffers.get(&number).cloned());
        }
        self.enter(number)
    }

    /// The same of a part of a block that is in the cache.
    fn save_part(&mut self, number: u64, range: &Range<usize>) -> Result<()> {
        let handle = self.handle.as_mut().ok_or(Error::Invalid)?;
        if !handle.is_final && !handle.before.contains_key(&number) {
            let buffer = self.buffers.get(&number).ok_or(Error::Invalid)?;
            handle.parts.push(Part {
                number,
                at: range.start,
                bytes: span(&buffer.data, range.start, range.len()).to_vec(),
                marks: buffer.marks,
            });
        }
        self.enter(number)
    }

    /// A block becomes one of the running transaction.
    fn enter(&mut self, number: u64) -> Result<()> {
        let blocks = &mut self.running.blocks;
        if blocks.len() >= self.running_max && !blocks.contains(&number) {
            return Err(Error::TooLarge);
        }
        blocks.insert(number);
        Ok(())
    }

    /// The block `number` to be changed in the handle.
    pub(crate) fn modify(
        &mut self,
        number: u64,
        seal: Seal,
        geometry: &Geometry,
    ) -> Result<&mut Vec<u8>> {
        self.load(number, seal, geometry)?;
        self.save(number)?;
        let buffer = self.buffers.get_mut(&number).ok_or(Error::Invalid)?;
        (buffer.marks.is_running, buffer.marks.sum) = (true, None);
        Ok(Arc::make_mut(&mut buffer.data))
    }

    /// The same of these bytes of it: all others keep their part in its sum.
    pub(crate) fn modify_part(
        &mut self,
        number: u64,
        seal: Seal,
        geometry: &Geometry,
        range: Range<usize>,
    ) -> Result<&mut [u8]> {
        self.load(number, seal, geometry)?;
        self.save_part(number, &range)?;
        let sums = self.sums;
        let buffer = self.buffers.get_mut(&number).ok_or(Error::Invalid)?;
        buffer.marks.is_running = true;
        if let Some(sum) = &mut buffer.marks.sum {
            sum.open(sums, &buffer.data, &range);
        }
        let bytes: &mut Vec<u8> = Arc::make_mut(&mut buffer.data);
        Ok(bytes.get_mut(range).unwrap_or(&mut []))
    }

    /// The sum of a block of the running transaction.
    pub(crate) fn sum_of(&mut self, number: u64) -> Result<BlockSum> {
        let sums = self.sums;
        let buffer = self.buffers.get_mut(&number).ok_or(Error::Invalid)?;
        Ok(buffer.summed(sums))
    }

    /// A block of zeroes in place of whatever was in block `number`, which is newly allocated.
    pub(crate) fn create(&mut self, number: u64, seal: Seal) -> Result<&mut Vec<u8>> {
        self.offset(number)?;
        let bytes = self.zeroed()?;
        self.save(number)?;
        let awaits_checkpoint = self
            .buffers
            .get(&number)
            .is_some_and(|b| b.awaits_checkpoint);
        self.keep(number, seal, bytes);
        let buffer = self.buffers.get_mut(&number).ok_or(Error::Invalid)?;
        buffer.marks.is_running = true;
        buffer.awaits_checkpoint = awaits_checkpoint;
        Ok(Arc::make_mut(&mut buffer.data))
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

    /// A block of metadata was freed: the log must not bring it back.
    pub(crate) fn revoke(&mut self, number: u64) {
        self.running.revoked.push(number);
    }

    /// Blocks that the running transaction has.
    pub(crate) fn running_len(&self) -> usize {
        self.running.blocks.len() + self.running.revoked.len() / 64
    }

    /// Blocks of the running transaction with their kinds.
    pub(crate) fn running_seals(&self) -> Vec<(u64, Seal)> {
        let seal = |number: &u64| {
            self.buffers
                .get(number)
                .map(|buffer| (*number, buffer.seal))
        };
        self.running.blocks.iter().filter_map(seal).collect()
    }

    /// What a commit writes: the blocks, with checksums, and the revoked ones.
    pub(crate) fn sealed(&mut self, context: &Context<'_>) -> (Vec<Sealed>, Vec<u64>) {
        let gone: BTreeSet<u64> = self.running.revoked.iter().copied().collect();
        let mut blocks = Vec::new();
        for number in self
            .running
            .blocks
            .iter()
            .filter(|number| !gone.contains(number))
        {
            let Some(buffer) = self.buffers.get_mut(number) else {
                continue;
            };
            let bytes = Arc::make_mut(&mut buffer.data);
            buffer
                .seal
                .apply(*number, bytes, buffer.marks.touched, context);
            buffer.marks.touched = 0;
            let has_sums = context.geometry.features.has_checksums();
            let sum = has_sums.then(|| buffer.summed(self.sums));
            blocks.push(Sealed {
                number: *number,
                data: buffer.data.clone(),
                sum,
            });
        }
        (blocks, gone.into_iter().collect())
    }

    /// The running transaction is on its way into the log: another one takes its place. Its blocks are kept for a
    /// checkpoint.
    pub(crate) fn close_running(&mut self) {
        let running = core::mem::take(&mut self.running);
        for number in running.blocks {
            if let Some(buffer) = self.buffers.get_mut(&number) {
                buffer.marks.is_running = false;
                buffer.awaits_checkpoint = true;
            }
        }
    }

    /// The transaction that freed these blocks is in the log for good.
    pub(crate) fn forget_revoked(&mut self, revoked: &[u64]) {
        for number in revoked {
            self.buffers.remove(number);
        }
    }

    /// Blocks that wait for a checkpoint.
    pub(crate) fn awaiting_len(&self) -> usize {
        self.buffers
            .values()
            .filter(|buffer| buffer.awaits_checkpoint)
            .count()
    }

    /// Writes all committed blocks to their places and flushes. No transaction is running.
    pub(crate) fn write_home(&mut self) -> Result<()> {
        let waiting: Vec<(u64, Block)> = self
            .buffers
            .iter()
            .filter(|(_, buffer)| buffer.awaits_checkpoint)
            .map(|(number, buffer)| (*number, buffer.data.clone()))
            .collect();
        let mut joined: Vec<Block> = Vec::new();
        let mut first = 0;
        for (number, data) in waiting {
            if number != first + joined.len() as u64 || joined.len() >= JOINED_MAX {
                self.write_blocks(first, &joined)?;
                joined.clear();
                first = number;
            }
            joined.push(data);
        }
        if !planted::is("a checkpoint leaves out its last blocks") {
            self.write_blocks(first, &joined)?;
        }
        if !planted::is("the tail moves before blocks are in their places") {
            self.device.flush()?;
        }
        for buffer in self.buffers.values_mut() {
            self.clean += usize::from(core::mem::take(&mut buffer.awaits_checkpoint));
        }
        Ok(())
    }
}
