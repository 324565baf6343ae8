//! A stack of frame numbers that one CPU works on and all may look at.

use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicU32, AtomicU64};

use crate::FrameNo;

/// Up to `N` frames. By *One writer* its operations are plain loads and stores.
#[derive(Debug)]
pub(crate) struct Stack<const N: usize> {
    len: AtomicU32,
    limit: AtomicU32,
    frames: [AtomicU64; N],
}

impl<const N: usize> Stack<N> {
    pub const fn new() -> Self {
        Self {
            len: AtomicU32::new(0),
            limit: AtomicU32::new(N as u32),
            frames: [const { AtomicU64::new(0) }; N],
        }
    }

    #[inline]
    pub fn len(&self) -> usize {
        self.len.load(Relaxed) as usize
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many it may hold.
    #[inline]
    pub fn limit(&self) -> usize {
        self.limit.load(Relaxed) as usize
    }

    /// Holds at most `limit` from now on, and `N`; what it holds already stays.
    pub fn set_limit(&self, limit: usize) {
        self.limit.store(limit.min(N) as u32, Relaxed);
    }

    /// The frame pushed last: the one most likely still in the processor's cache.
    #[inline]
    pub fn pop(&self) -> Option<FrameNo> {
        let top = self.len.load(Relaxed).checked_sub(1)?;
        let frame = self.frames.get(top as usize)?.load(Relaxed);
        self.len.store(top, Relaxed);
        Some(frame)
    }

    /// Keeps `frame`, or hands it back if the stack is full.
    #[inline]
    pub fn push(&self, frame: FrameNo) -> Result<(), FrameNo> {
        let len = self.len.load(Relaxed);
        if len >= self.limit.load(Relaxed) {
            return Err(frame);
        }
        let slot = self.frames.get(len as usize).ok_or(frame)?;
        slot.store(frame, Relaxed);
        self.len.store(len + 1, Relaxed);
        Ok(())
    }

    /// Takes the frame at `index`; the last one comes into its place.
    pub fn swap_remove(&self, index: usize) -> Option<FrameNo> {
        let wanted = self.get(index)?;
        let last = self.pop()?;
        if wanted != last {
            self.frames[index].store(last, Relaxed);
        }
        Some(wanted)
    }

    /// The frame at `index`, the bottom being 0.
    pub fn get(&self, index: usize) -> Option<FrameNo> {
        let frame = self.frames[..self.len()].get(index)?;
        Some(frame.load(Relaxed))
    }

    /// Moves the frames that rested longest into `to`; returns how many.
    pub fn take_oldest(&self, to: &mut [FrameNo]) -> usize {
        let len = self.len();
        let taken = to.len().min(len);
        for (slot, frame) in to.iter_mut().zip(&self.frames) {
            *slot = frame.load(Relaxed);
        }
        for index in taken..len {
            self.frames[index - taken].store(self.frames[index].load(Relaxed), Relaxed);
        }
        self.len.store((len - taken) as u32, Relaxed);
        taken
    }
}
