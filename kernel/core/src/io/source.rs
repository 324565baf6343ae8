//! Where bytes of a write come from.

use alloc::vec::Vec;
use core::ops::Range;

use base::{PAGE_BYTES, VirtAddr};

use super::ranges::{UserRange, UserRanges};
use crate::error::Result;
use crate::mm::{Access, Page};
use crate::user::{self, Fault};

enum Place<'a> {
    User(UserRanges),
    Kernel(&'a [u8]),
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
        Self::at(Place::User(UserRanges::one(start, len)))
    }

    /// From several ranges, one after the other.
    pub fn user_vec(ranges: Vec<UserRange>) -> Self {
        Self::at(Place::User(UserRanges::Many(ranges, 0)))
    }

    /// From a buffer of the kernel's.
    pub fn kernel(buffer: &'a [u8]) -> Self {
        Self::at(Place::Kernel(buffer))
    }

    fn at(place: Place<'a>) -> Self {
        Self {
            place,
            done: 0,
            fault: None,
        }
    }

    /// Bytes still to come.
    pub fn remaining(&self) -> usize {
        match &self.place {
            Place::User(ranges) => ranges.remaining(),
            Place::Kernel(buffer) => buffer.len(),
        }
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
            Place::Kernel(buffer) => {
                let bytes = cut(buffer, to.len());
                to[..bytes.len()].copy_from_slice(bytes);
                bytes.len()
            }
            Place::User(ranges) => {
                let (filled, fault) = ranges.pass(to.len(), |done, from| {
                    user::try_copy_in(from.start, &mut to[done..done + from.len])
                });
                if fault.is_some() {
                    self.fault = fault;
                }
                filled
            }
        };
        self.done += filled;
        filled
    }

    /// Stores at most `len` bytes in `page` from `offset` on, without a buffer between;
    /// returns how much. May block.
    pub fn take_page(&mut self, page: &Page, offset: usize, len: usize) -> Result<usize> {
        let total = len.min(self.remaining());
        let ranges = match &mut self.place {
            Place::Kernel(buffer) => {
                page.write(offset, cut(buffer, total));
                self.done += total;
                return Ok(total);
            }
            Place::User(ranges) => ranges,
        };
        let mut taken = 0;
        loop {
            let (more, fault) = ranges.pass(total - taken, |done, from| {
                page.copy_from_user(offset + taken + done, from.len, from.start)
            });
            taken += more;
            self.done += more;
            match fault {
                Some(fault) => user::resolve(fault.addr, Access::Read)?,
                None => return Ok(total),
            }
        }
    }

    /// The page that holds the next bytes, and where in it they lie; `None` where they lie in no
    /// page of a program. [`skip`](Self::skip) takes them. May block.
    pub fn next_page(&self) -> Result<Option<(Page, Range<usize>)>> {
        let Place::User(ranges) = &self.place else {
            return Ok(None);
        };
        let Some(range) = ranges.left().iter().find(|range| range.len != 0) else {
            return Ok(None);
        };
        let start = range.start.page_offset();
        let end = (start + range.len).min(PAGE_BYTES);
        let page = user::page(range.start)?;
        Ok(page.map(|page| (page, start..end)))
    }

    /// Passes `len` bytes over.
    pub fn skip(&mut self, len: usize) {
        self.done += match &mut self.place {
            Place::User(ranges) => ranges.pass(len, |_, _| Ok(())).0,
            Place::Kernel(buffer) => cut(buffer, len).len(),
        };
    }

    /// Brings in all pages that are still to be read, so that `try_take` will not stop
    /// unless the program unmaps them meanwhile. May block.
    pub fn prefault(&mut self) -> Result<()> {
        match &self.place {
            Place::User(ranges) => ranges.left().iter().try_for_each(touch),
            Place::Kernel(_) => Ok(()),
        }
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

/// Takes the first bytes off `buffer`, at most `limit` of them.
fn cut<'a>(buffer: &mut &'a [u8], limit: usize) -> &'a [u8] {
    let (first, rest) = buffer.split_at(limit.min(buffer.len()));
    *buffer = rest;
    first
}

/// Reads one byte of each page of `range`.
fn touch(range: &UserRange) -> Result<()> {
    let end = range.start + range.len as u64;
    let mut at = range.start;
    while at < end {
        user::copy_in(at, &mut [0])?;
        at = at.page_floor() + PAGE_BYTES as u64;
    }
    Ok(())
}
