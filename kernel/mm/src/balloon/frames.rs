//! The frames that the host has: a stack of blocks, each of a step's frames.
//!
//! A block is allocated before its frames are, in a way that may be refused; giving back allocates nothing.

use alloc::vec::Vec;

use balloon::STEP_FRAMES;
use base::PAGE_SHIFT;
use mach::mem::fallible;

use crate::space::Page;

/// Frames, and room for the numbers of a step's.
pub(super) struct Frames {
    blocks: Vec<Vec<Page>>,
    numbers: Vec<u32>,
}

fn number(page: &Page) -> u32 {
    (page.phys().0 >> PAGE_SHIFT) as u32
}

impl Frames {
    pub(super) fn new() -> Self {
        Self {
            blocks: Vec::new(),
            // The thread's own, once.
            numbers: Vec::with_capacity(STEP_FRAMES),
        }
    }

    /// Takes up to `wanted` frames of the machine's, at most what fits into the last block or a new one; their numbers.
    /// None if there is no memory.
    pub(super) fn add(&mut self, wanted: usize) -> &[u32] {
        self.numbers.clear();
        if !self.has_room() && self.add_block().is_err() {
            return &self.numbers;
        }
        if let Some(block) = self.blocks.last_mut() {
            let room = wanted.min(STEP_FRAMES - block.len());
            for page in (0..room).map_while(|_| Page::alloc()) {
                self.numbers.push(number(&page));
                block.push(page);
            }
        }
        // Nothing is kept for nothing.
        if self.blocks.last().is_some_and(Vec::is_empty) {
            self.blocks.pop();
        }
        &self.numbers
    }

    fn has_room(&self) -> bool {
        let last = self.blocks.last();
        last.is_some_and(|block| block.len() < STEP_FRAMES)
    }

    fn add_block(&mut self) -> Result<(), fallible::NoMemory> {
        let block = fallible::vec(STEP_FRAMES)?;
        fallible::reserve(|| self.blocks.try_reserve(1))?;
        self.blocks.push(block);
        Ok(())
    }

    /// The numbers of up to `wanted` frames that came last, which are those that [`Frames::release`] gives back.
    pub(super) fn last(&mut self, wanted: usize) -> &[u32] {
        self.numbers.clear();
        if let Some(block) = self.blocks.last() {
            let wanted = wanted.min(STEP_FRAMES);
            self.numbers
                .extend(block.iter().rev().take(wanted).map(number));
        }
        &self.numbers
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
