//! Where bytes of a read go.

use alloc::vec::Vec;

use base::VirtAddr;
use mach::mem;
use sched::resched_point;
use sync::{Error, Result};

use super::partial;
use super::ranges::{UserRange, UserRanges};
use crate::space::{Access, Page};
use crate::user::{self, Fault};

enum Place<'a> {
    User(UserRanges),
    Kernel(&'a mut [u8]),
    /// So many bytes are thrown away.
    Nowhere(usize),
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
        Self::at(Place::User(UserRanges::one(start, len)))
    }

    /// Into several ranges, one after the other.
    pub fn user_vec(ranges: Vec<UserRange>) -> Self {
        Self::at(Place::User(UserRanges::many(ranges)))
    }

    /// Into a buffer of the kernel's.
    pub fn kernel(buffer: &'a mut [u8]) -> Self {
        Self::at(Place::Kernel(buffer))
    }

    /// Nowhere: takes `len` bytes that nobody wants.
    pub fn nowhere(len: usize) -> Self {
        Self::at(Place::Nowhere(len))
    }

    fn at(place: Place<'a>) -> Self {
        Self {
            place,
            done: 0,
            fault: None,
        }
    }

    /// Bytes that still fit.
    pub fn remaining(&self) -> usize {
        match &self.place {
            Place::User(ranges) => ranges.remaining(),
            Place::Kernel(buffer) => buffer.len(),
            Place::Nowhere(left) => *left,
        }
    }

    /// Bytes taken so far.
    pub fn done(&self) -> usize {
        self.done
    }

    /// Takes as much of `bytes` as fits, up to a bad address; returns how much. May block.
    ///
    /// Errors: `BadAddress` if that is the first.
    pub fn put(&mut self, bytes: &[u8]) -> Result<usize> {
        self.let_others();
        let total = bytes.len().min(self.remaining());
        let mut taken = self.try_put(&bytes[..total]);
        while taken < total {
            let rest = &bytes[taken..total];
            let before = self.bytes_before_fault().min(rest.len());
            if let Err(error) = self.resolve() {
                return partial(taken + self.try_put(&rest[..before]), error);
            }
            taken += self.try_put(rest);
        }
        Ok(total)
    }

    /// Takes as much of a message as fits; returns how much. May block.
    ///
    /// Errors: `BadAddress` wherever the bad address lies.
    pub fn put_whole(&mut self, message: &[u8]) -> Result<usize> {
        let total = message.len().min(self.remaining());
        match self.put(message)? {
            taken if taken < total => Err(Error::BadAddress),
            taken => Ok(taken),
        }
    }

    /// Takes as much of `bytes` as fits, up to a page that is not there; never blocks.
    pub fn try_put(&mut self, bytes: &[u8]) -> usize {
        let taken = match &mut self.place {
            Place::Kernel(buffer) => {
                let space = cut(buffer, bytes.len());
                space.copy_from_slice(&bytes[..space.len()]);
                space.len()
            }
            Place::Nowhere(left) => {
                let taken = bytes.len().min(*left);
                *left -= taken;
                taken
            }
            Place::User(ranges) => {
                let (taken, fault) = ranges.pass(bytes.len(), |done, to| {
                    mem::copy_to_user(to.start, &bytes[done..done + to.len])
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

    /// Takes `len` bytes of `page` from `offset` on, as far as they fit, without a
    /// buffer between, up to a bad address; returns how much. May block.
    ///
    /// Errors: `BadAddress` if that is the first.
    pub fn put_page(&mut self, page: &Page, offset: usize, len: usize) -> Result<usize> {
        self.let_others();
        let total = len.min(self.remaining());
        let ranges = match &mut self.place {
            Place::Kernel(buffer) => {
                page.read(offset, cut(buffer, total));
                self.done += total;
                return Ok(total);
            }
            Place::Nowhere(left) => {
                *left -= total;
                self.done += total;
                return Ok(total);
            }
            Place::User(ranges) => ranges,
        };
        let mut put = 0;
        loop {
            let (more, fault) = ranges.pass(total - put, |done, to| {
                page.copy_to_user(offset + put + done, to.len, to.start)
            });
            put += more;
            self.done += more;
            let Some(fault) = fault else {
                return Ok(total);
            };
            if let Err(error) = user::resolve(fault.addr, Access::Write) {
                let before = ranges.before(fault).min(total - put);
                let (more, _) = ranges.pass(before, |done, to| {
                    page.copy_to_user(offset + put + done, to.len, to.start)
                });
                self.done += more;
                return partial(put + more, error);
            }
        }
    }

    /// The program's memory that takes the bytes, in order; nothing if the kernel's does.
    pub fn ranges(&self) -> impl Iterator<Item = UserRange> {
        let ranges = match &self.place {
            Place::User(ranges) => Some(ranges.left()),
            Place::Kernel(_) | Place::Nowhere(_) => None,
        };
        ranges.into_iter().flatten()
    }

    /// The program's memory that takes the next bytes; `None` if none does. What stores them there
    /// without us says so by [`skip`](Self::skip).
    pub fn next_range(&self) -> Option<UserRange> {
        let Place::User(ranges) = &self.place else {
            return None;
        };
        ranges.left().find(|range| range.len != 0)
    }

    /// Passes `len` bytes over.
    pub fn skip(&mut self, len: usize) {
        self.done += match &mut self.place {
            Place::User(ranges) => ranges.pass(len, |_, _| Ok(())).0,
            Place::Kernel(buffer) => cut(buffer, len).len(),
            Place::Nowhere(left) => {
                let taken = len.min(*left);
                *left -= taken;
                taken
            }
        };
    }

    /// Bytes that fit in front of the one at which `try_put` stopped.
    fn bytes_before_fault(&self) -> usize {
        match (&self.place, self.fault) {
            (Place::User(ranges), Some(fault)) => ranges.before(fault),
            _ => 0,
        }
    }

    /// A read of many pieces gives others a chance between them.
    #[inline]
    fn let_others(&self) {
        if self.done != 0 {
            resched_point();
        }
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

/// Takes the first bytes off `buffer`, at most `limit` of them.
fn cut<'a>(buffer: &mut &'a mut [u8], limit: usize) -> &'a mut [u8] {
    let count = limit.min(buffer.len());
    let (first, rest) = core::mem::take(buffer).split_at_mut(count);
    *buffer = rest;
    first
}
