//! The free lists of one zone: blocks of 2^order frames, aligned to their size.

use crate::info::FreeBlock;
use crate::{FrameNo, FrameTable};

/// Sizes of blocks: order 0 (4 KiB) to order 10 (4 MiB).
pub const ORDERS: usize = 11;
const ORDER_MAX: u8 = ORDERS as u8 - 1;
/// Frames in the largest block, hence in the largest extent of one allocation.
pub const PAGES_MAX: u64 = 1 << ORDER_MAX;

/// Free blocks by size, last freed first.
#[derive(Debug)]
pub(crate) struct Buddy {
    heads: [Option<FrameNo>; ORDERS],
    blocks: [u64; ORDERS],
}

impl Buddy {
    pub const fn new() -> Self {
        Self {
            heads: [None; ORDERS],
            blocks: [0; ORDERS],
        }
    }

    /// Free blocks of each order.
    pub const fn blocks(&self) -> [u64; ORDERS] {
        self.blocks
    }

    /// A block of 2^`order` frames.
    pub fn take_block(&mut self, table: &FrameTable, order: u8) -> Option<FrameNo> {
        let found = self.smallest(order)?;
        self.split(table, found, order)
    }

    /// Single frames into `to`; returns how many, none only where there are none.
    ///
    /// Takes whole blocks, smallest first, so a batch costs little more than one frame while
    /// memory is in large pieces. Only for its first frames it breaks a block: what remains of one
    /// that was broken for the last of them would be pieces of all sizes, with which the next
    /// batch starts and has to break a block again, and so on for good. What it leaves is larger
    /// than its room, so two batches in a row still bring as much as one that is full.
    pub fn take_frames(&mut self, table: &FrameTable, to: &mut [FrameNo]) -> usize {
        let mut taken = 0;
        while let Some(room) = (to.len() - taken).checked_ilog2() {
            let Some(found) = self.smallest(0) else { break };
            let order = found.min(room as u8);
            if order < found && taken > 0 {
                break;
            }
            let Some(first) = self.split(table, found, order) else {
                break;
            };
            let slots = &mut to[taken..taken + (1 << order)];
            slots
                .iter_mut()
                .zip(first..)
                .for_each(|(slot, frame)| *slot = frame);
            taken += slots.len();
        }
        taken
    }

    /// Frees the frames from `first`, which lie in RAM and are in use, block by block.
    pub fn give(&mut self, table: &FrameTable, first: FrameNo, pages: u64) {
        let (mut frame, end) = (first, first + pages);
        while frame < end {
            let order = largest_order(frame, end - frame);
            self.give_block(table, frame, order);
            frame += 1 << order;
        }
    }

    /// Frees one block, merging it with free buddies. By *Heads are true* a look at the
    /// buddy's first frame tells all.
    pub fn give_block(&mut self, table: &FrameTable, frame: FrameNo, order: u8) {
        let (mut frame, mut order) = (frame, order);
        while order < ORDER_MAX {
            let buddy = frame ^ (1 << order);
            if !table.info(buddy).is_some_and(|info| info.heads(order)) {
                break;
            }
            self.unlink(table, buddy);
            frame &= !(1 << order);
            order += 1;
        }
        self.push(table, frame, order);
    }

    fn smallest(&self, order: u8) -> Option<u8> {
        (order..=ORDER_MAX).find(|&order| self.heads[usize::from(order)].is_some())
    }

    /// Takes the first block of order `found`, keeps the lower 2^`order` frames of it and
    /// frees the rest.
    fn split(&mut self, table: &FrameTable, found: u8, order: u8) -> Option<FrameNo> {
        let frame = self.heads[usize::from(found)]?;
        self.unlink(table, frame);
        for half in (order..found).rev() {
            self.push(table, frame + (1 << half), half);
        }
        Some(frame)
    }

    fn push(&mut self, table: &FrameTable, frame: FrameNo, order: u8) {
        let next = self.heads[usize::from(order)].replace(frame);
        self.blocks[usize::from(order)] += 1;
        if let Some(info) = table.info(frame) {
            let prev = None;
            info.set_free(FreeBlock { order, prev, next });
        }
        if let Some(info) = next.and_then(|next| table.info(next)) {
            info.set_prev(order, Some(frame));
        }
    }

    /// Takes a free block off its list and marks its first frame as used, like the others.
    fn unlink(&mut self, table: &FrameTable, frame: FrameNo) {
        let Some(info) = table.info(frame) else {
            return;
        };
        let Some(FreeBlock { order, prev, next }) = info.free_block() else {
            return;
        };
        match prev.and_then(|prev| table.info(prev)) {
            Some(prev) => prev.set_next(order, next),
            None => self.heads[usize::from(order)] = next,
        }
        if let Some(next) = next.and_then(|next| table.info(next)) {
            next.set_prev(order, prev);
        }
        self.blocks[usize::from(order)] -= 1;
        info.set_used();
    }
}

/// The largest block that may start at `frame` and fits into `pages`, which is not 0.
pub(crate) fn largest_order(frame: FrameNo, pages: u64) -> u8 {
    let by_alignment = frame.trailing_zeros() as u8;
    let by_length = pages.ilog2() as u8;
    by_alignment.min(by_length).min(ORDER_MAX)
}
