//! One CPU's stack of single frames in front of the buddy.

use crate::FrameNo;

/// Frames that one CPU keeps at most.
const CACHE_FRAMES: usize = 64;
/// Frames moved between a cache and the buddy under one hold of the lock.
pub const CACHE_BATCH: usize = CACHE_FRAMES / 2;

/// Free frames that one CPU can hand out without a lock. For the buddy they are in
/// use (the used bit is set), so they do not merge while they rest here.
#[derive(Debug)]
pub struct FrameCache {
    frames: [FrameNo; CACHE_FRAMES],
    len: usize,
}

impl FrameCache {
    /// An empty cache.
    pub const fn new() -> Self {
        Self {
            frames: [0; CACHE_FRAMES],
            len: 0,
        }
    }

    /// Frames resting here.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether the next [`FrameCache::pop`] needs a refill.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The frame returned last: the one most likely still in the processor's cache.
    #[inline]
    pub fn pop(&mut self) -> Option<FrameNo> {
        self.len = self.len.checked_sub(1)?;
        self.frames.get(self.len).copied()
    }

    /// Keeps `frame`, or hands it back if the cache is full.
    #[inline]
    pub fn push(&mut self, frame: FrameNo) -> Result<(), FrameNo> {
        let slot = self.frames.get_mut(self.len).ok_or(frame)?;
        *slot = frame;
        self.len += 1;
        Ok(())
    }
}

impl Default for FrameCache {
    fn default() -> Self {
        Self::new()
    }
}
