//! Doorbells in memory (Doorbell Buffer Config, section 5.8 of version 1.3).
//!
//! A register of an emulated controller is expensive. One that offers it reads doorbells in memory while it is
//! busy, and writes beside them up to where it will look by itself: only who passes that rings the register. The
//! page of doorbells is followed by that of what the controller writes; both are laid out as the registers.
//!
//! The admin queue rings always: what the standard says of its doorbell in memory, controllers disagree on.

use core::sync::atomic::{Ordering, fence};

use hal::{DmaBuf, DmaRequest, DmaSource, SharedWords, Span};

use crate::error::Error;

const PAGE_BYTES: usize = 4096;

/// Both pages.
pub(crate) struct Shadows(SharedWords);

impl Shadows {
    pub(crate) fn new(memory: &impl DmaSource) -> Result<Self, Error> {
        let request = DmaRequest::new(2 * PAGE_BYTES, PAGE_BYTES);
        let pages: DmaBuf = memory.dma_alloc(&request).map_err(|_| Error::OutOfMemory)?;
        let words = SharedWords::new(pages.share());
        words.set_forgotten(true);
        Ok(Self(words))
    }

    /// Whether there is room for the doorbells of all queues up to this one.
    pub(crate) fn holds(queue: u16, stride: usize) -> bool {
        (2 * usize::from(queue) + 2) * stride <= PAGE_BYTES
    }

    /// The two pages, which the controller is about to be told.
    pub(crate) fn tell(&self) -> Option<(Span, Span)> {
        self.0.set_forgotten(false);
        let page = |at| self.0.dev_addr(at, PAGE_BYTES);
        Some((page(0)?, page(PAGE_BYTES)?))
    }

    /// The controller has been reset.
    pub(crate) fn forget(&self) {
        self.0.set_forgotten(true);
    }

    /// That of a doorbell, so many bytes behind the first; its queue is new.
    pub(crate) fn at(&self, offset: usize) -> Shadow {
        let words = self.0.clone();
        words.release_u32(offset, 0);
        words.release_u32(offset + PAGE_BYTES, 0);
        Shadow { words, offset }
    }
}

/// One doorbell in memory.
pub(crate) struct Shadow {
    words: SharedWords,
    offset: usize,
}

impl Shadow {
    /// Moves it; whether the register is to be rung too.
    pub(crate) fn advance(&self, to: u16) -> bool {
        let from = self.words.read_u32(self.offset) as u16;
        self.words.release_u32(self.offset, to.into());
        // The controller writes its word and then looks at ours once more.
        fence(Ordering::SeqCst);
        let event = self.words.read_u32(self.offset + PAGE_BYTES) as u16;
        to.wrapping_sub(event).wrapping_sub(1) < to.wrapping_sub(from)
    }
}
