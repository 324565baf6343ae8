//! Frames that somebody owns: one, or several that follow each other.

use base::{PAGE_SHIFT, PhysAddr};

use crate::FrameNo;

/// One frame, owned: it can not be copied, and dropping it without giving it back leaks
/// the memory (the machine layer's handles do that for you).
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a frame that is dropped is lost"]
pub struct Frame(FrameNo);

impl Frame {
    /// Its number.
    #[inline]
    pub const fn number(&self) -> FrameNo {
        self.0
    }

    /// Gives up the claim, for an owner that keeps it in another form (a page table
    /// entry, a pointer). [`Frame::from_number`] takes it up again.
    #[inline]
    pub fn into_number(self) -> FrameNo {
        self.0
    }

    /// Takes up a claim that [`Frame::into_number`] gave up. The caller asserts that the
    /// frame is in use and that nobody else will give it back.
    #[inline]
    pub const fn from_number(number: FrameNo) -> Self {
        Self(number)
    }
}

/// Physically contiguous frames, owned like a [`Frame`].
#[derive(Debug, PartialEq, Eq)]
#[must_use = "frames that are dropped are lost"]
pub struct Extent {
    first: FrameNo,
    pages: u64,
}

impl Extent {
    pub(crate) const fn new(first: FrameNo, pages: u64) -> Self {
        Self { first, pages }
    }

    /// Number of the first frame.
    pub const fn first(&self) -> FrameNo {
        self.first
    }

    /// Length in frames, at least 1.
    pub const fn pages(&self) -> u64 {
        self.pages
    }

    /// Physical address of the first byte.
    pub const fn base(&self) -> PhysAddr {
        PhysAddr(self.first << PAGE_SHIFT)
    }

    /// Length in bytes.
    pub const fn bytes(&self) -> usize {
        (self.pages as usize) << PAGE_SHIFT
    }

    /// The first `pages` frames and the others; the extent itself if either part would
    /// be empty.
    pub fn split(self, pages: u64) -> Result<(Self, Self), Self> {
        if pages == 0 || pages >= self.pages {
            return Err(self);
        }
        Ok((
            Self::new(self.first, pages),
            Self::new(self.first + pages, self.pages - pages),
        ))
    }

    /// One extent out of two, if `next` starts where this one ends.
    pub fn join(self, next: Self) -> Result<Self, (Self, Self)> {
        if self.first + self.pages != next.first {
            return Err((self, next));
        }
        Ok(Self::new(self.first, self.pages + next.pages))
    }

    /// Gives up the claim, for an owner that keeps it in another form (a page table
    /// entry, a pointer). [`Extent::from_parts`] takes it up again.
    pub fn into_parts(self) -> (FrameNo, u64) {
        (self.first, self.pages)
    }

    /// Takes up a claim that [`Extent::into_parts`] gave up. The caller asserts that
    /// these frames are contiguous frames in use that nobody else will give back.
    pub const fn from_parts(first: FrameNo, pages: u64) -> Self {
        Self::new(first, pages)
    }
}
