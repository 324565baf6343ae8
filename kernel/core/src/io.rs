//! Where bytes of a read go, and where bytes of a write come from.
//!
//! A [`Sink`] or [`Source`] hides whether the other side is a program's memory (one range
//! or the ranges of readv/writev) or a buffer of the kernel's (exec, sendfile, splice).
//! Both count what has passed. They may block on a page fault: never use them with a
//! spin lock held.

use alloc::vec::Vec;

use base::VirtAddr;

use crate::error::Result;
use crate::user;

/// A range of a program's memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UserRange {
    /// Its first byte.
    pub start: VirtAddr,
    /// Its length in bytes.
    pub len: usize,
}

enum Place<'a> {
    One(UserRange),
    Many(Vec<UserRange>, usize),
    Kernel(&'a mut [u8]),
    KernelConst(&'a [u8]),
}

impl Place<'_> {
    /// The next range of user memory, at most `limit` bytes of it, and moves past it.
    fn take_user(&mut self, limit: usize) -> Option<UserRange> {
        let range = match self {
            Self::One(range) => range,
            Self::Many(ranges, index) => {
                while ranges.get(*index).is_some_and(|range| range.len == 0) {
                    *index += 1;
                }
                ranges.get_mut(*index)?
            }
            _ => return None,
        };
        let taken = UserRange { start: range.start, len: range.len.min(limit) };
        range.start = range.start + taken.len as u64;
        range.len -= taken.len;
        Some(taken)
    }

    fn remaining(&self) -> usize {
        match self {
            Self::One(range) => range.len,
            Self::Many(ranges, index) => ranges.iter().skip(*index).map(|range| range.len).sum(),
            Self::Kernel(bytes) => bytes.len(),
            Self::KernelConst(bytes) => bytes.len(),
        }
    }
}

/// Takes the bytes that a read produces.
pub struct Sink<'a> {
    place: Place<'a>,
    done: usize,
}

impl<'a> Sink<'a> {
    /// Into one range of the program's memory.
    pub fn user(start: VirtAddr, len: usize) -> Self {
        Self { place: Place::One(UserRange { start, len }), done: 0 }
    }

    /// Into several ranges, one after the other.
    pub fn user_vec(ranges: Vec<UserRange>) -> Self {
        Self { place: Place::Many(ranges, 0), done: 0 }
    }

    /// Into a buffer of the kernel's.
    pub fn kernel(buffer: &'a mut [u8]) -> Self {
        Self { place: Place::Kernel(buffer), done: 0 }
    }

    /// Bytes that still fit.
    pub fn remaining(&self) -> usize {
        self.place.remaining()
    }

    /// Bytes taken so far.
    pub fn done(&self) -> usize {
        self.done
    }

    /// Takes as much of `bytes` as fits; returns how much.
    ///
    /// On a bad address nothing of the faulting range counts as taken.
    pub fn put(&mut self, bytes: &[u8]) -> Result<usize> {
        let mut rest = &bytes[..bytes.len().min(self.remaining())];
        let total = rest.len();
        if let Place::Kernel(buffer) = &mut self.place {
            let (now, later) = core::mem::take(buffer).split_at_mut(total);
            now.copy_from_slice(rest);
            *buffer = later;
            self.done += total;
            return Ok(total);
        }
        while !rest.is_empty() {
            let Some(range) = self.place.take_user(rest.len()) else { break };
            let (now, later) = rest.split_at(range.len);
            user::copy_out(now, range.start)?;
            self.done += range.len;
            rest = later;
        }
        Ok(total)
    }
}

/// Gives the bytes that a write consumes.
pub struct Source<'a> {
    place: Place<'a>,
    done: usize,
}

impl<'a> Source<'a> {
    /// From one range of the program's memory.
    pub fn user(start: VirtAddr, len: usize) -> Self {
        Self { place: Place::One(UserRange { start, len }), done: 0 }
    }

    /// From several ranges, one after the other.
    pub fn user_vec(ranges: Vec<UserRange>) -> Self {
        Self { place: Place::Many(ranges, 0), done: 0 }
    }

    /// From a buffer of the kernel's.
    pub fn kernel(buffer: &'a [u8]) -> Self {
        Self { place: Place::KernelConst(buffer), done: 0 }
    }

    /// Bytes still to come.
    pub fn remaining(&self) -> usize {
        self.place.remaining()
    }

    /// Bytes given so far.
    pub fn done(&self) -> usize {
        self.done
    }

    /// Fills `to` as far as the bytes reach; returns how much.
    pub fn take(&mut self, to: &mut [u8]) -> Result<usize> {
        let total = to.len().min(self.remaining());
        if let Place::KernelConst(buffer) = &mut self.place {
            let (now, later) = buffer.split_at(total);
            to[..total].copy_from_slice(now);
            *buffer = later;
            self.done += total;
            return Ok(total);
        }
        let mut filled = 0;
        while filled < total {
            let Some(range) = self.place.take_user(total - filled) else { break };
            user::copy_in(range.start, &mut to[filled..filled + range.len])?;
            self.done += range.len;
            filled += range.len;
        }
        Ok(total)
    }
}
