//! From a frame's number to its [`FrameInfo`], and the count of its owners.

use crate::{FrameInfo, FrameNo};

/// Ranges of RAM that one table can describe.
pub const SECTIONS_MAX: usize = 16;
/// Owners that one frame may have. Far above any honest use, and far enough below the
/// used bit that racing increments which are about to be refused can not reach it.
const OWNERS_MAX: u64 = 1 << 40;

/// More ranges of RAM than [`SECTIONS_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManySections;

/// The frame has as many owners as can be counted; the request to share it is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overshared;

#[derive(Clone, Copy, Debug)]
struct Section {
    first: FrameNo,
    infos: &'static [FrameInfo],
}

/// All of RAM: a short list of sections, each an array of frame states.
#[derive(Debug)]
pub struct FrameTable {
    sections: [Section; SECTIONS_MAX],
    len: usize,
}

impl FrameTable {
    /// A table of no RAM.
    pub const fn new() -> Self {
        Self {
            sections: [Section {
                first: 0,
                infos: &[],
            }; SECTIONS_MAX],
            len: 0,
        }
    }

    /// Describes the frames from `first` by `infos`, one each. Larger sections should
    /// come first: they are looked at in the order of addition.
    pub fn add(
        &mut self,
        first: FrameNo,
        infos: &'static [FrameInfo],
    ) -> Result<(), TooManySections> {
        let slot = self.sections.get_mut(self.len).ok_or(TooManySections)?;
        *slot = Section { first, infos };
        self.len += 1;
        Ok(())
    }

    /// The state of `frame`, or `None` if it is not RAM that this table describes.
    #[inline]
    pub fn info(&self, frame: FrameNo) -> Option<&'static FrameInfo> {
        self.sections[..self.len].iter().find_map(|section| {
            section
                .infos
                .get(frame.wrapping_sub(section.first) as usize)
        })
    }

    /// Adds an owner to a frame in use.
    #[inline]
    pub fn share(&self, frame: FrameNo) -> Result<(), Overshared> {
        let info = self.info(frame).ok_or(Overshared)?;
        if info.add_owner() >= OWNERS_MAX {
            info.drop_owner();
            return Err(Overshared);
        }
        Ok(())
    }

    /// Takes an owner away; true if it was the last, and the caller now has to give
    /// the frame back. The used bit stays until the buddy clears it.
    #[inline]
    pub fn release(&self, frame: FrameNo) -> bool {
        let Some(info) = self.info(frame) else {
            return false;
        };
        // An only owner is the caller, so nobody can add one meanwhile.
        if info.owners() == 1 {
            return true;
        }
        let was_last = info.drop_owner() == 1;
        if was_last {
            info.set_used();
        }
        was_last
    }

    /// How many owners a frame in use has; 0 for a frame that is free or not RAM.
    #[inline]
    pub fn owners(&self, frame: FrameNo) -> u64 {
        self.info(frame)
            .filter(|info| info.is_used())
            .map_or(0, FrameInfo::owners)
    }
}

impl Default for FrameTable {
    fn default() -> Self {
        Self::new()
    }
}
