//! Where bytes of a write come from.

use alloc::vec::Vec;
use core::ops::Range;

use base::{PAGE_BYTES, VirtAddr};
use mach::mem;
use sched::resched_point;
use sync::{Error, Result};

use super::partial;
use super::ranges::{UserRange, UserRanges};
use crate::space::{Access, Page};
use crate::user::{self, Fault};

enum Place<'a> {
    User(UserRanges),
    /// All of it, also what has been given.
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
        Self::at(Place::User(UserRanges::many(ranges)))
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
            Place::Kernel(buffer) => buffer.len() - self.done,
        }
    }

    /// Ends after `len` more bytes.
    pub fn cut_to(&mut self, len: usize) {
        match &mut self.place {
            Place::User(ranges) => ranges.cut_to(len),
            Place::Kernel(buffer) => {
                let end = (self.done + len).min(buffer.len());
                *buffer = &buffer[..end];
            }
        }
    }

    /// Bytes given so far.
    pub fn done(&self) -> usize {
        self.done
    }

    /// Fills `to` as far as the bytes reach, up to a bad address; returns how much. May block.
    ///
    /// Errors: `BadAddress` if that is the first.
    pub fn take(&mut self, to: &mut [u8]) -> Result<usize> {
        self.let_others();
        let total = to.len().min(self.remaining());
        let mut filled = self.try_take(&mut to[..total]);
        while filled < total {
            let rest = &mut to[filled..total];
            let before = self.bytes_before_fault().min(rest.len());
            if let Err(error) = self.resolve() {
                return partial(filled + self.try_take(&mut rest[..before]), error);
            }
            filled += self.try_take(rest);
        }
        Ok(total)
    }

    /// Fills `to` as far as the bytes of a message reach; returns how much. May block.
    ///
    /// Errors: `BadAddress` wherever the bad address lies.
    pub fn take_whole(&mut self, to: &mut [u8]) -> Result<usize> {
        let total = to.len().min(self.remaining());
        match self.take(to)? {
            filled if filled < total => Err(Error::BadAddress),
            filled => Ok(filled),
        }
    }

    /// Fills `to` as far as the bytes reach, up to a page that is not there; never blocks.
    pub fn try_take(&mut self, to: &mut [u8]) -> usize {
        let filled = match &mut self.place {
            Place::Kernel(buffer) => {
                let bytes = rest(buffer, self.done, to.len());
                to[..bytes.len()].copy_from_slice(bytes);
                bytes.len()
            }
            Place::User(ranges) => {
                let (filled, fault) = ranges.pass(to.len(), |done, from| {
                    mem::copy_from_user(&mut to[done..done + from.len], from.start)
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
    /// up to a bad address; returns how much. May block.
    ///
    /// Errors: `BadAddress` if that is the first.
    pub fn take_page(&mut self, page: &Page, offset: usize, len: usize) -> Result<usize> {
        self.let_others();
        let total = len.min(self.remaining());
        let ranges = match &mut self.place {
            Place::Kernel(buffer) => {
                page.write(offset, rest(buffer, self.done, total));
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
            let Some(fault) = fault else {
                return Ok(total);
            };
            if let Err(error) = user::resolve(fault.addr, Access::Read) {
                let before = ranges.before(fault).min(total - taken);
                let (more, _) = ranges.pass(before, |done, from| {
                    page.copy_from_user(offset + taken + done, from.len, from.start)
                });
                self.done += more;
                return partial(taken + more, error);
            }
        }
    }

    /// The program's memory that has the bytes, in order; nothing if the kernel's does.
    pub fn ranges(&self) -> impl Iterator<Item = UserRange> {
        let ranges = match &self.place {
            Place::User(ranges) => Some(ranges.left()),
            Place::Kernel(_) => None,
        };
        ranges.into_iter().flatten()
    }

    /// The same up to a page that is not there; never blocks.
    pub fn try_take_page(&mut self, page: &Page, offset: usize, len: usize) -> usize {
        let total = len.min(self.remaining());
        let taken = match &mut self.place {
            Place::Kernel(buffer) => {
                let bytes = rest(buffer, self.done, total);
                page.write(offset, bytes);
                bytes.len()
            }
            Place::User(ranges) => {
                let (taken, fault) = ranges.pass(total, |done, from| {
                    page.copy_from_user(offset + done, from.len, from.start)
                });
                if fault.is_some() {
                    self.fault = fault;
                }
                taken
            }
        };
        self.done += taken;
        taken
    }

    /// The page that holds the next bytes, and where in it they lie; `None` where they lie in no
    /// page of a program. [`skip`](Self::skip) takes them. May block.
    pub fn next_page(&self) -> Result<Option<(Page, Range<usize>)>> {
        let Place::User(ranges) = &self.place else {
            return Ok(None);
        };
        let Some(range) = ranges.left().find(|range| range.len != 0) else {
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
            Place::Kernel(buffer) => rest(buffer, self.done, len).len(),
        };
    }

    /// Goes back over the last `bytes` that were given.
    pub fn rewind(&mut self, bytes: usize) {
        self.done -= bytes;
        self.fault = None;
        match &mut self.place {
            Place::User(ranges) => ranges.rewind(bytes),
            // `done` says what is left of it.
            Place::Kernel(_) => {}
        }
    }

    /// The same where a page is not there, which still is not.
    pub fn rewind_from_fault(&mut self, bytes: usize) {
        let fault = self.fault;
        self.rewind(bytes);
        self.fault = fault;
    }

    /// Brings in all pages that are still to be read, so that `try_take` will not stop
    /// unless the program unmaps them meanwhile. May block.
    pub fn prefault(&mut self) -> Result<()> {
        match &self.place {
            Place::User(ranges) => ranges.left().try_for_each(touch),
            Place::Kernel(_) => Ok(()),
        }
    }

    /// Bytes in front of the one at which `try_take` stopped.
    fn bytes_before_fault(&self) -> usize {
        match (&self.place, self.fault) {
            (Place::User(ranges), Some(fault)) => ranges.before(fault),
            _ => 0,
        }
    }

    /// A write of many pieces gives others a chance between them.
    #[inline]
    fn let_others(&self) {
        if self.done != 0 {
            resched_point();
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

/// At most `limit` bytes of `buffer` from the `done`-th on.
fn rest(buffer: &[u8], done: usize, limit: usize) -> &[u8] {
    let left = &buffer[done..];
    &left[..limit.min(left.len())]
}

/// Reads one byte of each page of `range`.
fn touch(range: UserRange) -> Result<()> {
    let end = range.start + range.len as u64;
    let mut at = range.start;
    while at < end {
        user::copy_in(at, &mut [0])?;
        resched_point();
        at = at.page_floor() + PAGE_BYTES as u64;
    }
    Ok(())
}
