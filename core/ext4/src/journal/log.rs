//! Writing to the log.

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::format::{
    self, DESCRIPTOR, Format, LogSuper, MAGIC, Sums, TAG_ESCAPED, TAG_LAST, TAG_SAME_UUID, Tag,
};
use crate::bytes::{be32, put_be32};
use crate::device::Durability;
use crate::error::{Corrupt, MountError, Result};
use crate::layout::extent::Extent;
use crate::store::{Block, Sealed, Store};

/// Blocks that are written to the log at once.
const BATCH_BLOCKS: usize = 64;

/// The log of a mounted image.
#[derive(Debug)]
pub(crate) struct Log {
    /// Where the file's blocks are.
    map: Vec<Extent>,
    block_bytes: usize,
    raw: Vec<u8>,
    pub(super) state: LogSuper,
    /// The next block to be written.
    head: u32,
    used: u32,
}

/// A transaction with its place in the log. Its blocks, and the data that it makes visible, have to be on the medium before
/// its commit block is written.
#[derive(Debug)]
pub(crate) struct Laid {
    /// Blocks behind each other, from this byte of the disk on.
    pub(crate) pieces: Vec<(u64, Vec<Block>)>,
    /// The same of the block that says that it is whole.
    pub(crate) commit_block: (u64, Vec<u8>),
}

impl Log {
    /// Reads the log's superblock.
    pub(crate) fn open(
        store: &mut Store,
        map: Vec<Extent>,
        block_bytes: usize,
    ) -> Result<Self, MountError> {
        let first = map.first().filter(|extent| extent.logical == 0);
        let place = first.ok_or(Corrupt::Journal)?.physical;
        let mut raw = store.zeroed()?;
        store.read_data(place, 0, &mut raw)?;
        let state = LogSuper::parse(&raw, block_bytes, store.device.sums_begin())?;
        let covered: u64 = map.iter().map(|extent| u64::from(extent.len)).sum();
        if covered < u64::from(state.len) {
            return Err(Corrupt::Journal.into());
        }
        let head = state.first;
        Ok(Self {
            map,
            block_bytes,
            raw,
            state,
            head,
            used: 0,
        })
    }

    /// Whether transactions have to be replayed.
    pub(crate) fn is_dirty(&self) -> bool {
        self.state.start != 0
    }

    /// Blocks for transactions.
    fn capacity(&self) -> u32 {
        self.state.len - self.state.first
    }

    /// Blocks that one transaction may have.
    pub(crate) fn transaction_max(&self) -> usize {
        (self.capacity() / 4) as usize
    }

    /// Whether the log has no room for another transaction of the largest size.
    pub(crate) fn is_short(&self) -> bool {
        self.used > self.capacity() / 2 && !planted::is("the log overtakes its own tail")
    }

    /// The place of a block of the log.
    pub(super) fn place(&self, block: u32) -> Result<u64, Corrupt> {
        let after = self.map.partition_point(|extent| extent.logical <= block);
        let extent = after.checked_sub(1).and_then(|index| self.map.get(index));
        let found = extent.filter(|extent| u64::from(block) < extent.end());
        Ok(found.ok_or(Corrupt::Journal)?.from(block).physical)
    }

    /// The block behind `block`; the last is followed by the first.
    pub(super) fn after(&self, block: u32) -> u32 {
        if block + 1 >= self.state.len {
            self.state.first
        } else {
            block + 1
        }
    }

    /// Begins to write: an empty log in our format.
    pub(crate) fn start(
        &mut self,
        store: &mut Store,
        has_sums: bool,
        is_64bit: bool,
    ) -> Result<()> {
        self.state.format.sums = if has_sums { Sums::V3 } else { Sums::None };
        self.state.format.is_64bit = is_64bit;
        self.move_tail(store)
    }

    /// All that is committed is in its place: the log is empty and goes on at its head.
    pub(crate) fn move_tail(&mut self, store: &mut Store) -> Result<()> {
        self.state.start = self.head;
        self.used = 0;
        self.store_superblock(store)
    }

    /// As [`Log::move_tail`], for good: there is nothing to be replayed.
    pub(crate) fn close(&mut self, store: &mut Store) -> Result<()> {
        self.state.start = 0;
        self.store_superblock(store)
    }

    /// The log was replayed up to before `sequence`.
    pub(super) fn set_recovered(&mut self, store: &mut Store, sequence: u32) -> Result<()> {
        self.state.sequence = sequence;
        self.close(store)
    }

    fn store_superblock(&mut self, store: &mut Store) -> Result<()> {
        self.state.store(&mut self.raw);
        let place = self.place(0)?;
        store.write_data(place, &self.raw, Durability::Forced)
    }

    /// Gives a transaction its place in the log, which nobody else gets.
    pub(crate) fn lay_out(
        &mut self,
        store: &mut Store,
        blocks: &[Sealed],
        revoked: &[u64],
        seconds: u64,
    ) -> Result<Laid> {
        let mut pieces = Vec::new();
        let format = self.state.format;
        let sequence = self.state.sequence;
        let revoked = match planted::is("revoked blocks are not logged") {
            true => &[],
            false => revoked,
        };
        for numbers in revoked.chunks(format.revokes_per_block(self.block_bytes)) {
            let mut block = store.zeroed()?;
            format.set_revoked(&mut block, sequence, numbers);
            self.append(store, &mut pieces, Arc::new(block))?;
        }
        for part in blocks.chunks(format.tags_per_block(self.block_bytes)) {
            let descriptor = descriptor(&format, sequence, part, store.zeroed()?);
            self.append(store, &mut pieces, Arc::new(descriptor))?;
            for block in part {
                self.append(store, &mut pieces, copy_of(&block.data))?;
            }
        }
        let mut block = store.zeroed()?;
        format.set_commit(&mut block, sequence, seconds);
        let place = self.next_place(store)?;
        self.state.sequence = sequence.wrapping_add(1);
        Ok(Laid {
            pieces,
            commit_block: (place, block),
        })
    }

    /// Where the next block is written: its byte of the disk.
    fn next_place(&mut self, store: &Store) -> Result<u64> {
        let place = store.offset(self.place(self.head)?)?;
        self.head = self.after(self.head);
        self.used += 1;
        Ok(place)
    }

    /// The log may lie in several pieces of the disk, and goes round.
    fn append(
        &mut self,
        store: &Store,
        pieces: &mut Vec<(u64, Vec<Block>)>,
        block: Block,
    ) -> Result<()> {
        let place = self.next_place(store)?;
        let each = self.block_bytes as u64;
        let is_next = |(first, blocks): &&mut (u64, Vec<Block>)| {
            blocks.len() < BATCH_BLOCKS && first.wrapping_add(blocks.len() as u64 * each) == place
        };
        match pieces.last_mut().filter(is_next) {
            Some((_, blocks)) => blocks.push(block),
            None => pieces.push((place, alloc::vec![block])),
        }
        Ok(())
    }
}

/// What the log has of a block: no block of the log but its own begins as those do.
fn copy_of(block: &Block) -> Block {
    let mut copy = block.clone();
    if be32(block, 0) == MAGIC {
        let bytes: &mut Vec<u8> = Arc::make_mut(&mut copy);
        put_be32(bytes, 0, 0);
    }
    copy
}

fn descriptor(format: &Format, sequence: u32, part: &[Sealed], mut block: Vec<u8>) -> Vec<u8> {
    format::set_header(&mut block, DESCRIPTOR, sequence);
    for (index, Sealed { number, data, sum }) in part.iter().enumerate() {
        let is_escaped = be32(data, 0) == MAGIC;
        let checksum = match sum.filter(|_| !is_escaped) {
            Some(sum) => format.copy_checksum_of(sequence, sum, data.len()),
            None => format.copy_checksum(sequence, &copy_of(data)),
        };
        let flags = [
            (is_escaped, TAG_ESCAPED),
            (index != 0, TAG_SAME_UUID),
            (index + 1 == part.len(), TAG_LAST),
        ];
        let flags = flags
            .iter()
            .filter(|(is_set, _)| *is_set)
            .map(|(_, bit)| bit)
            .sum();
        format.put_tag(
            &mut block,
            index,
            &Tag {
                block: *number,
                flags,
                checksum,
            },
        );
    }
    format.seal_tail(&mut block, format.tag_at(part.len()));
    block
}
