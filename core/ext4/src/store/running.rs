//! The running transaction on its way: into the log, and later to its blocks' places.

use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::{Block, Store};
use crate::error::{Error, Result};
use crate::seal::{Context, Seal};
use crate::sums::BlockSum;

/// Blocks that one device write moves at most when neighbours are joined.
const JOINED_MAX: usize = 64;

/// The running transaction.
#[derive(Debug, Default)]
pub(super) struct Running {
    pub(super) blocks: BTreeSet<u64>,
    pub(super) revoked: Vec<u64>,
}

/// A block as a commit writes it.
#[derive(Clone, Debug)]
pub(crate) struct Sealed {
    pub(crate) number: u64,
    pub(crate) data: Block,
    /// Of the data, where the image has sums.
    pub(crate) sum: Option<BlockSum>,
}

impl Store {
    /// The sum of a block of the running transaction.
    pub(crate) fn sum_of(&mut self, number: u64) -> Result<BlockSum> {
        let sums = self.sums;
        let buffer = self.buffers.get_mut(&number).ok_or(Error::Invalid)?;
        Ok(buffer.summed(sums))
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
