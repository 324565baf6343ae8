//! Ranges of a program's memory, passed through from the first byte to the last.

use alloc::vec::Vec;

use base::VirtAddr;
use mach::mem::USER_END;
use sync::{Error, Result};

use crate::user::Fault;

/// A range of a program's memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UserRange {
    /// Its first byte.
    pub start: VirtAddr,
    /// Its length in bytes.
    pub len: usize,
}

impl UserRange {
    /// A range that lies in memory which programs can have.
    ///
    /// Errors: `BadAddress`.
    pub fn new(start: VirtAddr, len: usize) -> Result<Self> {
        match start <= USER_END && len as u64 <= USER_END.0 - start.0 {
            true => Ok(Self { start, len }),
            false => Err(Error::BadAddress),
        }
    }

    /// The range without its first `bytes`, of which it has as many.
    #[inline(always)]
    fn from(self, bytes: usize) -> Self {
        Self {
            start: self.start + bytes as u64,
            len: self.len - bytes,
        }
    }
}

/// What is left of one range, or of several: from byte `passed` of the range `index` on.
pub(super) enum UserRanges {
    One(UserRange),
    Many {
        ranges: Vec<UserRange>,
        index: usize,
        passed: usize,
    },
}

impl UserRanges {
    pub(super) fn one(start: VirtAddr, len: usize) -> Self {
        Self::One(UserRange { start, len })
    }

    pub(super) fn many(ranges: Vec<UserRange>) -> Self {
        Self::Many {
            ranges,
            index: 0,
            passed: 0,
        }
    }

    /// What is left, from the next byte on.
    pub(super) fn left(&self) -> impl Iterator<Item = UserRange> + '_ {
        let (ranges, passed) = match self {
            Self::One(range) => (core::slice::from_ref(range), 0),
            Self::Many {
                ranges,
                index,
                passed,
            } => (ranges.get(*index..).unwrap_or(&[]), *passed),
        };
        let passed = core::iter::once(passed).chain(core::iter::repeat(0));
        ranges.iter().zip(passed).map(|(range, at)| range.from(at))
    }

    pub(super) fn remaining(&self) -> usize {
        match self {
            Self::One(range) => range.len,
            Self::Many { .. } => self.left().map(|range| range.len).sum(),
        }
    }

    /// Bytes in front of the one that `fault` stopped at: a copy may stop some words before.
    pub(super) fn before(&self, fault: Fault) -> usize {
        let next = self.left().find(|range| range.len != 0);
        let before = |range: UserRange| fault.addr.0.saturating_sub(range.start.0) as usize;
        next.map_or(0, |range| before(range).min(range.len))
    }

    /// Goes back over `bytes` that have passed.
    pub(super) fn rewind(&mut self, mut bytes: usize) {
        match self {
            Self::One(range) => {
                range.start = VirtAddr(range.start.0 - bytes as u64);
                range.len += bytes;
            }
            Self::Many {
                ranges,
                index,
                passed,
            } => {
                while bytes > *passed {
                    bytes -= *passed;
                    *index -= 1;
                    *passed = ranges[*index].len;
                }
                *passed -= bytes;
            }
        }
    }

    /// Ends after `len` more bytes.
    pub(super) fn cut_to(&mut self, len: usize) {
        match self {
            Self::One(range) => range.len = range.len.min(len),
            Self::Many {
                ranges,
                index,
                passed,
            } => {
                let mut left = *passed + len;
                for range in ranges.iter_mut().skip(*index) {
                    range.len = range.len.min(left);
                    left -= range.len;
                }
            }
        }
    }

    /// Passes at most `limit` bytes: `copy` is told how many have passed and the range of the
    /// next ones. Returns how many passed, and the fault that ended it, if one did.
    #[inline(always)]
    pub(super) fn pass(
        &mut self,
        limit: usize,
        mut copy: impl FnMut(usize, UserRange) -> core::result::Result<(), Fault>,
    ) -> (usize, Option<Fault>) {
        let Self::One(range) = self else {
            return self.pass_many(limit, &mut copy);
        };
        let next = UserRange {
            start: range.start,
            len: range.len.min(limit),
        };
        if next.len == 0 {
            return (0, None);
        }
        let copied = copy(0, next);
        let count = copied.map_or_else(|fault| fault.done, |()| next.len);
        *range = range.from(count);
        (count, copied.err())
    }

    /// The same through several ranges.
    fn pass_many(
        &mut self,
        limit: usize,
        copy: &mut dyn FnMut(usize, UserRange) -> core::result::Result<(), Fault>,
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
    fn next(&mut self, limit: usize) -> Option<UserRange> {
        let range = match self {
            Self::One(range) => *range,
            Self::Many {
                ranges,
                index,
                passed,
            } => {
                while ranges.get(*index).is_some_and(|range| range.len == *passed) {
                    *index += 1;
                    *passed = 0;
                }
                ranges.get(*index)?.from(*passed)
            }
        };
        Some(UserRange {
            start: range.start,
            len: range.len.min(limit),
        })
        .filter(|r| r.len != 0)
    }

    /// Moves past `bytes` of the range that `next` showed.
    fn advance(&mut self, bytes: usize) {
        match self {
            Self::One(range) => *range = range.from(bytes),
            Self::Many { passed, .. } => *passed += bytes,
        }
    }
}
