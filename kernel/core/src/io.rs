//! Where bytes of a read go, and where bytes of a write come from.
//!
//! A [`Sink`] or [`Source`] hides whether the other side is a program's memory (one range
//! or the ranges of readv/writev) or a buffer of the kernel's (exec, sendfile, splice).
//! Both count what has passed. `put` and `take` may block on a page fault: never use
//! them with a spin lock held. `try_put` and `try_take` stop at a fault instead; the
//! caller drops its lock, calls `resolve` and tries again.

use alloc::vec::Vec;

use base::VirtAddr;

use crate::error::Result;
use crate::mm::{Access, Page};
use crate::user::{self, Fault};

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
    /// The next range of user memory, at most `limit` bytes of it.
    fn peek_user(&mut self, limit: usize) -> Option<UserRange> {
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
        Some(UserRange {
            start: range.start,
            len: range.len.min(limit),
        })
        .filter(|r| r.len != 0)
    }

    /// Moves past `bytes` of the range that `peek_user` showed.
    fn advance_user(&mut self, bytes: usize) {
        let range = match self {
            Self::One(range) => Some(range),
            Self::Many(ranges, index) => ranges.get_mut(*index),
            _ => None,
        };
        if let Some(range) = range {
            range.start = range.start + bytes as u64;
            range.len -= bytes.min(range.len);
        }
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
    fault: Option<Fault>,
}

impl<'a> Sink<'a> {
    /// Into one range of the program's memory.
    pub fn user(start: VirtAddr, len: usize) -> Self {
        Self {
            place: Place::One(UserRange { start, len }),
            done: 0,
            fault: None,
        }
    }

    /// Into several ranges, one after the other.
    pub fn user_vec(ranges: Vec<UserRange>) -> Self {
        Self {
            place: Place::Many(ranges, 0),
            done: 0,
            fault: None,
        }
    }

    /// Into a buffer of the kernel's.
    pub fn kernel(buffer: &'a mut [u8]) -> Self {
        Self {
            place: Place::Kernel(buffer),
            done: 0,
            fault: None,
        }
    }

    /// Bytes that still fit.
    pub fn remaining(&self) -> usize {
        self.place.remaining()
    }

    /// Bytes taken so far.
    pub fn done(&self) -> usize {
        self.done
    }

    /// Takes as much of `bytes` as fits; returns how much. May block.
    pub fn put(&mut self, bytes: &[u8]) -> Result<usize> {
        let total = bytes.len().min(self.remaining());
        let mut taken = self.try_put(&bytes[..total]);
        while taken < total {
            self.resolve()?;
            taken += self.try_put(&bytes[taken..total]);
        }
        Ok(total)
    }

    /// Takes as much of `bytes` as fits, up to a page that is not there; never blocks.
    pub fn try_put(&mut self, bytes: &[u8]) -> usize {
        let taken = match &mut self.place {
            Place::Kernel(buffer) => fill(buffer, bytes),
            _ => self.put_user(bytes),
        };
        self.done += taken;
        taken
    }

    fn put_user(&mut self, bytes: &[u8]) -> usize {
        let mut taken = 0;
        while taken < bytes.len()
            && let Some(range) = self.place.peek_user(bytes.len() - taken)
        {
            let copied = user::try_copy_out(&bytes[taken..taken + range.len], range.start);
            let count = copied.map_or_else(|fault| fault.done, |()| range.len);
            self.place.advance_user(count);
            taken += count;
            if let Err(fault) = copied {
                self.fault = Some(fault);
                break;
            }
        }
        taken
    }

    /// Whether `try_put` stopped at a page that is not there.
    pub fn is_faulted(&self) -> bool {
        self.fault.is_some()
    }

    /// Brings in the page at which `try_put` stopped, if it did. May block.
    pub fn resolve(&mut self) -> Result<()> {
        self.fault
            .take()
            .map_or(Ok(()), |fault| user::resolve(fault.addr, Access::Write))
    }
}

fn fill(buffer: &mut &mut [u8], bytes: &[u8]) -> usize {
    let count = bytes.len().min(buffer.len());
    let (now, later) = core::mem::take(buffer).split_at_mut(count);
    now.copy_from_slice(&bytes[..count]);
    *buffer = later;
    count
}

impl Sink<'_> {
    /// Takes `len` bytes of `page` from `offset` on, as far as they fit, without a
    /// buffer between; returns how much.
    pub fn put_page(&mut self, page: &Page, offset: usize, len: usize) -> Result<usize> {
        let total = len.min(self.remaining());
        if let Place::Kernel(buffer) = &mut self.place {
            let (now, later) = core::mem::take(buffer).split_at_mut(total);
            page.read(offset, now);
            *buffer = later;
            self.done += total;
            return Ok(total);
        }
        let mut put = 0;
        while put < total {
            let Some(range) = self.place.peek_user(total - put) else {
                break;
            };
            let copied = page.copy_to_user(offset + put, range.len, range.start);
            let count = copied.map_or_else(|fault| fault.done, |()| range.len);
            self.place.advance_user(count);
            self.done += count;
            put += count;
            if let Err(fault) = copied {
                user::resolve(fault.addr, Access::Write)?;
            }
        }
        Ok(total)
    }
}

/// Gives the bytes that a write consumes.
pub struct Source<'a> {
    place: Place<'a>,
    done: usize,
    fault: Option<Fault>,
}

impl<'a> Source<'a> {
    /// From one range of the program's memory.
    pub fn user(start: VirtAddr, len: usize) -> Self {
        Self {
            place: Place::One(UserRange { start, len }),
            done: 0,
            fault: None,
        }
    }

    /// From several ranges, one after the other.
    pub fn user_vec(ranges: Vec<UserRange>) -> Self {
        Self {
            place: Place::Many(ranges, 0),
            done: 0,
            fault: None,
        }
    }

    /// From a buffer of the kernel's.
    pub fn kernel(buffer: &'a [u8]) -> Self {
        Self {
            place: Place::KernelConst(buffer),
            done: 0,
            fault: None,
        }
    }

    /// Bytes still to come.
    pub fn remaining(&self) -> usize {
        self.place.remaining()
    }

    /// Bytes given so far.
    pub fn done(&self) -> usize {
        self.done
    }

    /// Fills `to` as far as the bytes reach; returns how much. May block.
    pub fn take(&mut self, to: &mut [u8]) -> Result<usize> {
        let total = to.len().min(self.remaining());
        let mut filled = self.try_take(&mut to[..total]);
        while filled < total {
            self.resolve()?;
            filled += self.try_take(&mut to[filled..total]);
        }
        Ok(total)
    }

    /// Fills `to` as far as the bytes reach, up to a page that is not there; never blocks.
    pub fn try_take(&mut self, to: &mut [u8]) -> usize {
        let filled = match &mut self.place {
            Place::KernelConst(buffer) => drain(buffer, to),
            _ => self.take_user(to),
        };
        self.done += filled;
        filled
    }

    fn take_user(&mut self, to: &mut [u8]) -> usize {
        let mut filled = 0;
        while filled < to.len()
            && let Some(range) = self.place.peek_user(to.len() - filled)
        {
            let copied = user::try_copy_in(range.start, &mut to[filled..filled + range.len]);
            let count = copied.map_or_else(|fault| fault.done, |()| range.len);
            self.place.advance_user(count);
            filled += count;
            if let Err(fault) = copied {
                self.fault = Some(fault);
                break;
            }
        }
        filled
    }

    /// Brings in all pages that are still to be read, so that `try_take` will not stop
    /// unless the program unmaps them meanwhile. May block.
    pub fn prefault(&mut self) -> Result<()> {
        let ranges = match &self.place {
            Place::One(range) => core::slice::from_ref(range),
            Place::Many(ranges, index) => ranges.get(*index..).unwrap_or(&[]),
            _ => &[],
        };
        ranges.iter().try_for_each(touch)
    }

    /// Whether `try_take` stopped at a page that is not there.
    pub fn is_faulted(&self) -> bool {
        self.fault.is_some()
    }

    /// Brings in the page at which `try_take` stopped, if it did. May block.
    pub fn resolve(&mut self) -> Result<()> {
        self.fault
            .take()
            .map_or(Ok(()), |fault| user::resolve(fault.addr, Access::Read))
    }
}

fn drain(buffer: &mut &[u8], to: &mut [u8]) -> usize {
    let count = to.len().min(buffer.len());
    let (now, later) = buffer.split_at(count);
    to[..count].copy_from_slice(now);
    *buffer = later;
    count
}

/// Reads one byte of each page of `range`.
fn touch(range: &UserRange) -> Result<()> {
    let end = range.start + range.len as u64;
    let mut at = range.start;
    while at < end {
        user::copy_in(at, &mut [0])?;
        at = at.page_floor() + base::PAGE_BYTES as u64;
    }
    Ok(())
}

impl Source<'_> {
    /// Stores at most `len` bytes in `page` from `offset` on, without a buffer between;
    /// returns how much.
    pub fn take_page(&mut self, page: &Page, offset: usize, len: usize) -> Result<usize> {
        let total = len.min(self.remaining());
        if let Place::KernelConst(buffer) = &mut self.place {
            let (now, later) = buffer.split_at(total);
            page.write(offset, now);
            *buffer = later;
            self.done += total;
            return Ok(total);
        }
        let mut taken = 0;
        while taken < total {
            let Some(range) = self.place.peek_user(total - taken) else {
                break;
            };
            let copied = page.copy_from_user(offset + taken, range.len, range.start);
            let count = copied.map_or_else(|fault| fault.done, |()| range.len);
            self.place.advance_user(count);
            self.done += count;
            taken += count;
            if let Err(fault) = copied {
                user::resolve(fault.addr, Access::Read)?;
            }
        }
        Ok(total)
    }
}
