//! The free lists: blocks of 2^order frames, aligned to their size.

use crate::info::FreeBlock;
use crate::{Extent, FrameNo, FrameTable};

/// Sizes of blocks: order 0 (4 KiB) to order 10 (4 MiB).
pub const ORDERS: usize = 11;
const ORDER_MAX: u8 = ORDERS as u8 - 1;
/// Frames in the largest block, hence in the largest extent of one allocation.
pub const PAGES_MAX: u64 = 1 << ORDER_MAX;

/// All free frames of a [`FrameTable`].
#[derive(Debug)]
pub struct Buddy {
    heads: [Option<FrameNo>; ORDERS],
    free: u64,
}

impl Buddy {
    /// No free frame yet; see [`Buddy::donate`].
    pub const fn new() -> Self {
        Self {
            heads: [None; ORDERS],
            free: 0,
        }
    }

    /// Free frames on all lists.
    pub const fn free_frames(&self) -> u64 {
        self.free
    }

    /// Makes reserved frames allocatable. Frames that the table does not describe, or
    /// that are free already, are left out; returns how many were taken.
    pub fn donate(&mut self, table: &FrameTable, first: FrameNo, pages: u64) -> u64 {
        let before = self.free;
        let mut frame = first;
        while frame < first + pages {
            let order = largest_order(frame, first + pages - frame);
            let run = frame..frame + (1 << order);
            if run
                .clone()
                .all(|frame| table.info(frame).is_some_and(|info| info.is_used()))
            {
                self.free_block(table, frame, order);
            } else {
                run.clone().for_each(|frame| self.donate_one(table, frame));
            }
            frame = run.end;
        }
        self.free - before
    }

    fn donate_one(&mut self, table: &FrameTable, frame: FrameNo) {
        if table.info(frame).is_some_and(|info| info.is_used()) {
            self.free_block(table, frame, 0);
        }
    }

    /// `pages` contiguous frames, aligned to the next power of two of their number.
    /// What the block has beyond them stays free.
    pub fn alloc(&mut self, table: &FrameTable, pages: u64) -> Option<Extent> {
        if pages == 0 || pages > PAGES_MAX {
            return None;
        }
        let order = pages.next_power_of_two().trailing_zeros() as u8;
        let first = self.alloc_block(table, order)?;
        self.donate(table, first + pages, (1 << order) - pages);
        Some(Extent::new(first, pages))
    }

    /// One frame.
    pub fn alloc_one(&mut self, table: &FrameTable) -> Option<FrameNo> {
        self.alloc_block(table, 0)
    }

    /// Gives an extent back.
    pub fn free(&mut self, table: &FrameTable, extent: Extent) {
        let (first, pages) = extent.into_parts();
        self.donate(table, first, pages);
    }

    /// Gives one frame back. A frame that is free already is left alone.
    pub fn free_one(&mut self, table: &FrameTable, frame: FrameNo) {
        self.donate_one(table, frame);
    }

    fn alloc_block(&mut self, table: &FrameTable, order: u8) -> Option<FrameNo> {
        let found = (order..=ORDER_MAX).find(|&o| self.heads[usize::from(o)].is_some())?;
        let frame = self.heads[usize::from(found)]?;
        self.unlink(table, frame)?;
        for half in (order..found).rev() {
            self.push(table, frame + (1 << half), half);
        }
        for used in frame..frame + (1 << order) {
            table.info(used)?.set_used();
        }
        self.free -= 1 << order;
        Some(frame)
    }

    fn free_block(&mut self, table: &FrameTable, frame: FrameNo, order: u8) {
        self.free += 1 << order;
        let (mut frame, mut order) = (frame, order);
        while order < ORDER_MAX {
            let buddy = frame ^ (1 << order);
            let block = table.info(buddy).and_then(|info| info.free_block());
            if block.is_none_or(|block| block.order != order) {
                break;
            }
            self.unlink(table, buddy);
            frame &= !(1 << order);
            order += 1;
        }
        self.push(table, frame, order);
    }

    fn push(&mut self, table: &FrameTable, frame: FrameNo, order: u8) {
        let head = &mut self.heads[usize::from(order)];
        let next = head.replace(frame);
        if let Some(info) = table.info(frame) {
            info.set_free(FreeBlock {
                order,
                prev: None,
                next,
            });
        }
        update(table, next, |block| block.prev = Some(frame));
    }

    /// Takes a free block off its list; its word still says "free" until it is reused.
    fn unlink(&mut self, table: &FrameTable, frame: FrameNo) -> Option<()> {
        let block = table.info(frame)?.free_block()?;
        match block.prev {
            Some(_) => update(table, block.prev, |prev| prev.next = block.next),
            None => self.heads[usize::from(block.order)] = block.next,
        }
        update(table, block.next, |next| next.prev = block.prev);
        Some(())
    }
}

impl Default for Buddy {
    fn default() -> Self {
        Self::new()
    }
}

fn update(table: &FrameTable, frame: Option<FrameNo>, change: impl FnOnce(&mut FreeBlock)) {
    let Some(info) = frame.and_then(|frame| table.info(frame)) else {
        return;
    };
    if let Some(mut block) = info.free_block() {
        change(&mut block);
        info.set_free(block);
    }
}

/// The largest block that may start at `frame` and fits into `pages`.
fn largest_order(frame: FrameNo, pages: u64) -> u8 {
    let by_alignment = frame.trailing_zeros() as u8;
    let by_length = pages.ilog2() as u8;
    by_alignment.min(by_length).min(ORDER_MAX)
}
