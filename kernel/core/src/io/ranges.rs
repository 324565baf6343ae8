//! Ranges of a program's memory, passed through from the first byte to the last.

use alloc::vec::Vec;

use base::VirtAddr;

use crate::user::Fault;

/// A range of a program's memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UserRange {
    /// Its first byte.
    pub start: VirtAddr,
    /// Its length in bytes.
    pub len: usize,
}

/// What is left of one range, or of several with the index of the first that is left.
pub(super) enum UserRanges {
    One(UserRange),
    Many(Vec<UserRange>, usize),
}

impl UserRanges {
    pub(super) fn one(start: VirtAddr, len: usize) -> Self {
        Self::One(UserRange { start, len })
    }

    pub(super) fn left(&self) -> &[UserRange] {
        match self {
            Self::One(range) => core::slice::from_ref(range),
            Self::Many(ranges, index) => ranges.get(*index..).unwrap_or(&[]),
        }
    }

    pub(super) fn remaining(&self) -> usize {
        match self {
            Self::One(range) => range.len,
            Self::Many(..) => self.left().iter().map(|range| range.len).sum(),
        }
    }

    /// Passes at most `limit` bytes: `copy` is told how many have passed and the range of the
    /// next ones. Returns how many passed, and the fault that ended it, if one did.
    #[inline(always)]
    pub(super) fn pass(
        &mut self,
        limit: usize,
        mut copy: impl FnMut(usize, UserRange) -> Result<(), Fault>,
    ) -> (usize, Option<Fault>) {
        let mut done = 0;
        while done < limit
            && let Some(range) = self.next(limit - done)
        {
            let copied = copy(done, range);
            let count = copied.map_or_else(|fault| fault.done, |()| range.len);
            self.advance(count);
            done += count;
            if let Err(fault) = copied {
                return (done, Some(fault));
            }
        }
        (done, None)
    }

    /// The next range, at most `limit` bytes of it.
    #[inline(always)]
    fn next(&mut self, limit: usize) -> Option<UserRange> {
        let range = match self {
            Self::One(range) => range,
            Self::Many(ranges, index) => {
                while ranges.get(*index).is_some_and(|range| range.len == 0) {
                    *index += 1;
                }
                ranges.get_mut(*index)?
            }
        };
        Some(UserRange {
            start: range.start,
            len: range.len.min(limit),
        })
        .filter(|r| r.len != 0)
    }

    /// Moves past `bytes` of the range that `next` showed.
    #[inline(always)]
    fn advance(&mut self, bytes: usize) {
        let range = match self {
            Self::One(range) => Some(range),
            Self::Many(ranges, index) => ranges.get_mut(*index),
        };
        if let Some(range) = range {
            range.start = range.start + bytes as u64;
            range.len -= bytes.min(range.len);
        }
    }
}
