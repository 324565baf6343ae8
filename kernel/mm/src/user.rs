//! The only door to a program's memory.
//!
//! A copy first just tries; where the machine reports a fault, the address space resolves
//! it in ordinary context (it may read a file) and the copy goes on from there. So all
//! these functions may block: no spin lock is held across them.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use base::{PAGE_BYTES, VirtAddr};
use mach::mem;
pub use mach::mem::Fault;
use mach::mem::fallible::TryGrow;
use mach::task::{Current, CurrentPart};
use sched::Mstate;
use sync::{Error, Result, Slot};
use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::reclaim;
use crate::space::{Access, AddressSpace, Page};

/// Bytes that are copied between two chances to reschedule.
const PIECE_BYTES: usize = 64 << 10;

/// Fills `to` from the program's memory at `from`.
#[inline]
pub fn copy_in(from: VirtAddr, to: &mut [u8]) -> Result<()> {
    in_pieces(to.len(), Access::Read, |piece| {
        mem::copy_from_user(&mut to[piece.clone()], from + piece.start as u64)
    })
}

/// Stores `from` in the program's memory at `to`.
#[inline]
pub fn copy_out(from: &[u8], to: VirtAddr) -> Result<()> {
    in_pieces(from.len(), Access::Write, |piece| {
        mem::copy_to_user(to + piece.start as u64, &from[piece])
    })
}

/// Copies `len` bytes by `copy`, which is told which of them, a piece at a time: however long the
/// whole is, others get the CPU in between. Most copies are one piece whose pages are there.
#[inline(always)]
fn in_pieces(
    len: usize,
    access: Access,
    mut copy: impl FnMut(Range<usize>) -> core::result::Result<(), Fault>,
) -> Result<()> {
    let mut done = 0;
    if len <= PIECE_BYTES {
        match copy(0..len) {
            Ok(()) => return Ok(()),
            Err(fault) => {
                done = fault.done;
                resolve(fault.addr, access)?;
            }
        }
    }
    go_on(done, len, access, &mut copy)
}

/// Copies what is left behind the first `done` bytes. Apart, so that the usual copy is short
/// enough to stand where it is asked for, with its length known.
#[cold]
#[inline(never)]
fn go_on(
    mut done: usize,
    len: usize,
    access: Access,
    copy: &mut dyn FnMut(Range<usize>) -> core::result::Result<(), Fault>,
) -> Result<()> {
    loop {
        let end = len.min(done + PIECE_BYTES);
        match copy(done..end) {
            Ok(()) => done = end,
            Err(fault) => {
                done += fault.done;
                resolve(fault.addr, access)?;
                continue;
            }
        }
        if done == len {
            return Ok(());
        }
        sched::resched_point();
    }
}

/// Stores `len` bytes of `byte` in the program's memory at `to`.
pub fn fill(to: VirtAddr, byte: u8, len: usize) -> Result<()> {
    in_pieces(len, Access::Write, |piece| {
        mem::fill_user(to + piece.start as u64, byte, piece.len())
    })
}

/// Reads one value of plain data.
#[inline]
pub fn read<T: FromBytes + IntoBytes>(from: VirtAddr) -> Result<T> {
    let mut value = T::new_zeroed();
    copy_in(from, value.as_mut_bytes())?;
    Ok(value)
}

/// Writes one value of plain data.
#[inline]
pub fn write<T: IntoBytes + Immutable>(to: VirtAddr, value: T) -> Result<()> {
    copy_out(value.as_bytes(), to)
}

/// Where the running thread has its space, said once at boot by who keeps threads.
static SPACE: CurrentPart<Slot<AddressSpace>> = CurrentPart::new();

/// Says where the running thread has its address space; once at boot.
pub fn find_space_by(find: fn() -> Current<Slot<AddressSpace>>) {
    SPACE.find_by(find);
}

/// The running program's address space.
pub fn space() -> Arc<AddressSpace> {
    SPACE.get().get()
}

/// Brings in the page that the kernel's own access to a program's memory missed.
pub fn resolve(address: VirtAddr, access: Access) -> Result<()> {
    let space = space();
    let fault = || {
        let resolved = space.fault(address, access);
        resolved.or_else(|why| reclaim::retry_fault(&space, address, access, why))
    };
    sched::in_mstate(Mstate::DataFault, fault).map_err(|_| Error::BadAddress)
}

/// The program's page at `address`, which it may read; `None` if it was unmapped meanwhile.
pub fn page(address: VirtAddr) -> Result<Option<Page>> {
    resolve(address, Access::Read)?;
    Ok(space().page(address))
}

/// Bytes of a string that are fetched at a time.
const STRING_CHUNK_BYTES: usize = 128;

/// Reads a string that ends with a zero byte, which is not part of the result.
///
/// `None` if it is `max` bytes or longer.
pub fn read_string(from: VirtAddr, max: usize) -> Result<Option<Vec<u8>>> {
    let mut string = Vec::new();
    let mut at = from;
    while string.len() < max {
        let mut chunk = [0; STRING_CHUNK_BYTES];
        // Not across a page: the next one may not exist.
        let in_page = PAGE_BYTES - at.page_offset();
        let len = in_page.min(STRING_CHUNK_BYTES).min(max - string.len());
        copy_in(at, &mut chunk[..len])?;
        let end = chunk[..len].iter().position(|byte| *byte == 0);
        let part = &chunk[..end.unwrap_or(len)];
        string.make_room(part.len())?;
        string.extend_from_slice(part);
        if end.is_some() {
            return Ok(Some(string));
        }
        at = at + len as u64;
    }
    Ok(None)
}
