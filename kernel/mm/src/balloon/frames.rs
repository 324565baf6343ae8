//! The frames that the host has: a stack of blocks, each of a step's frames.
//!
//! A block is allocated before its frames are, in a way that may be refused; giving back allocates nothing.

use alloc::vec::Vec;

use balloon::STEP_FRAMES;
use base::PAGE_SHIFT;
use mach::mem::fallible::{self, NoMemory, TryPush};

use crate::space::Page;

/// The frames, and the numbers of those that the device is told next.
pub(super) struct Frames {
    blocks: Vec<Vec<Page>>,
    numbers: [u32; STEP_FRAMES],
}

fn number(page: &Page) -> u32 {
    (page.phys().0 >> PAGE_SHIFT) as u32
}

impl Frames {
    pub(super) const fn new() -> Self {
        Self {
            blocks: Vec::new(),
            numbers: [0; STEP_FRAMES],
        }
    }

    /// Takes up to `wanted` frames of the machine's, at most what fits into the last block or a new one; their numbers.
    /// None if there is no memory.
    pub(super) fn add(&mut self, wanted: usize) -> &[u32] {
        let Ok(block) = self.block_with_room() else {
            return &[];
        };
        let room = wanted.min(STEP_FRAMES - block.len());
        let mut count = 0;
        for page in (0..room).map_while(|_| Page::alloc()) {
            block.push(page);
            count += 1;
        }
        // No block is kept for nothing.
        self.release(0);
        self.last(count)
    }

    fn block_with_room(&mut self) -> Result<&mut Vec<Page>, NoMemory> {
        let last = self.blocks.last();
        if last.is_none_or(|block| block.len() == STEP_FRAMES) {
            let block = fallible::vec(STEP_FRAMES)?;
            self.blocks.try_push(block)?;
        }
        self.blocks.last_mut().ok_or(NoMemory)
    }

    /// The numbers of up to `wanted` frames that came last, which are those that [`Frames::release`] gives back; at most
    /// a block's.
    pub(super) fn last(&mut self, wanted: usize) -> &[u32] {
        let block = self.blocks.last().map_or(&[][..], Vec::as_slice);
        let frames = block.iter().rev().take(wanted);
        let count = frames.len();
        let listed = self.numbers.iter_mut().zip(frames);
        listed.for_each(|(to, page)| *to = number(page));
        self.numbers.get(..count).unwrap_or(&[])
    }

    /// Gives back so many of those that came last, at most a block's.
    pub(super) fn release(&mut self, count: usize) {
        if let Some(block) = self.blocks.last_mut() {
            block.truncate(block.len().saturating_sub(count));
        }
        if self.blocks.last().is_some_and(Vec::is_empty) {
            self.blocks.pop();
        }
    }
}
