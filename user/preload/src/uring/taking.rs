//! A ring of the kernel's becomes ours: when it is first entered, or told, with a socket of ours.
//!
//! Its pages are exchanged under the program's addresses, with all that is in them. What the kernel has under way is
//! carried over when it completes, under the names that the program gave (`posix::uring`, `forward`). Other threads that change
//! the ring at this moment would change pages that are gone; a program has one thread at a ring at a time, as io_uring(7)
//! asks of it.

use std::ffi::{CStr, c_int, c_uint};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::slice;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use base::SharedMemory;
use posix::uring::Ring;
use rt::RingMemory;
use uring::{Geometry, SQE_BYTES, Sqe, SqeFlags, offset};

use super::abi;
use super::entering::{Inside, OwnRing};
use super::kernels::KernelRing;
use super::syscalls::{raw_map, raw_register};
use super::table::{self, Found, Known, Mapped};
use crate::numbers::{self, Whose};
use crate::state::Held;

const PAGE_BYTES: usize = 4096;
const MEMORY_NAME: &CStr = c"io_uring";
/// IORING_OP_*.
const SOCKET: u8 = 45;
const EPOLL_CTL: u8 = 29;
const UNREGISTER_EVENTFD: c_uint = 5;

/// Taken by who takes a ring.
static TAKING: Mutex<()> = Mutex::new(());

/// A ring as its program has it, to look at.
#[derive(Clone, Copy)]
struct View {
    geometry: Geometry,
    rings: *const u8,
    entries: *const u8,
}

impl View {
    fn of(known: &Known) -> Option<Self> {
        let geometry = known.geometry?;
        let find = |offset, bytes| {
            let mut maps = known.maps.iter();
            let map = maps.find(|map| map.offset == offset && map.bytes >= bytes)?;
            Some(map.start.cast_const())
        };
        Some(Self {
            geometry,
            rings: find(abi::OFF_SQ_RING, geometry.array())?,
            entries: find(abi::OFF_SQES, geometry.sqe_bytes())?,
        })
    }

    fn word(&self, at: usize) -> u32 {
        // SAFETY: **Caller**: the ring is mapped there, as long as its geometry says.
        unsafe { self.rings.add(at).cast::<u32>().read_volatile() }
    }

    /// Whether one of so many entries is for a socket of ours.
    fn uses_ours(&self, count: c_uint) -> bool {
        let head = self.word(offset::SQ_HEAD);
        let given = self.word(offset::SQ_TAIL).wrapping_sub(head);
        let mask = self.geometry.sq_entries() - 1;
        let count = given.min(count).min(mask + 1);
        (0..count).any(|index| {
            let slot = (head.wrapping_add(index) & mask) as usize;
            let place = self.word(self.geometry.array() + slot * size_of::<u32>()) & mask;
            let at = place as usize * SQE_BYTES;
            // SAFETY: **Caller**: as above.
            let bytes = unsafe {
                self.entries
                    .add(at)
                    .cast::<[u8; SQE_BYTES]>()
                    .read_volatile()
            };
            is_for_us(&Sqe::from_bytes(&bytes))
        })
    }
}

fn is_for_us(sqe: &Sqe) -> bool {
    let flags = SqeFlags::from_bits_truncate(sqe.flags);
    match sqe.opcode {
        SOCKET => sqe.fd == libc::AF_INET,
        EPOLL_CTL => is_ours(sqe.off as c_int),
        _ => !flags.contains(SqeFlags::FIXED_FILE) && is_ours(sqe.fd),
    }
}

/// Whether a number is, or may become, a socket of ours.
pub fn is_ours(number: c_int) -> bool {
    use Whose::{Inherited, Parent, Socket};
    matches!(numbers::seen(number), Socket | Parent | Inherited)
}

/// Takes a ring, if it is about to be entered for ours.
pub fn take_if_used(number: c_int, submit: c_uint) -> Found {
    if submit == 0 || numbers::seen(number) != Whose::Ring {
        return Found::Kernels;
    }
    let view = table::with_known(number, |known| View::of(known));
    match view.flatten().is_some_and(|view| view.uses_ours(submit)) {
        true => take(number),
        false => Found::Kernels,
    }
}

/// Takes it.
pub fn take(number: c_int) -> Found {
    let _taking = TAKING.lock().unwrap_or_else(PoisonError::into_inner);
    let is_possible = table::with_known(number, |known| table::may_be_ours(known.flags));
    if is_possible == Some(true) && Held::open().is_some() {
        let taken = table::with_known(number, |known| exchange(number, known));
        match taken {
            Some(Ok((ring, is_polled))) => {
                table::give(number, &ring);
                if is_polled {
                    ring.set_polled();
                }
            }
            Some(Err(error)) => {
                eprintln!("libsietch: a ring of io_uring stays the kernel's: {error}");
            }
            None => {}
        }
    }
    table::find(number)
}

fn exchange(number: c_int, known: &mut Known) -> io::Result<(Arc<OwnRing>, bool)> {
    let view = View::of(known).ok_or(io::ErrorKind::InvalidInput)?;
    let geometry = view.geometry;
    let mut kernel = KernelRing::of(number, geometry)?;
    let longest = known.maps.iter().map(|map| map.bytes).max();
    let ring_bytes = longest.unwrap_or(0).max(geometry.ring_bytes());
    let entries_at = ring_bytes.next_multiple_of(PAGE_BYTES);
    let memory = make_memory(entries_at + ring_bytes.max(geometry.sqe_bytes()))?;
    let file = memory.as_fd();
    let rings = RingMemory::map(file, geometry.ring_bytes(), 0)?;
    let entries = RingMemory::map(file, geometry.sqe_bytes(), entries_at as u64)?;
    kernel.hand_over(&rings, &entries);
    for map in &known.maps {
        let from = match map.offset {
            abi::OFF_SQES => entries_at as i64,
            _ => 0,
        };
        exchange_pages(map, file, from)?;
    }
    let submits_all = known.flags & abi::SETUP_SUBMIT_ALL != 0;
    let mut ring = Ring::new(geometry, submits_all, rings, entries);
    ring.registered = std::mem::take(&mut known.registered);
    let eventfd = known.eventfd.take();
    if eventfd.is_some() {
        // SAFETY: no memory is passed.
        unsafe { raw_register(number, UNREGISTER_EVENTFD, std::ptr::null_mut(), 0) };
    }
    let inside = Inside {
        ring,
        kernel,
        watched: Vec::new(),
        polled: None,
    };
    let ring = OwnRing::new(number, inside, eventfd.unwrap_or(-1));
    if eventfd.is_some() {
        ring.keeper.is_prompt.store(true, Ordering::Release);
    }
    Ok((ring, known.is_polled))
}

/// Has pages of a file where the program has the ring's.
fn exchange_pages(map: &Mapped, file: BorrowedFd<'_>, from: i64) -> io::Result<()> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let how = libc::MAP_SHARED | libc::MAP_POPULATE | libc::MAP_FIXED;
    let what = [protection, how, file.as_raw_fd()];
    // SAFETY: the memory there is the ring's, whose own words they have already.
    let start = unsafe { raw_map(map.start.cast(), map.bytes, what, from) };
    match start == libc::MAP_FAILED {
        true => Err(io::Error::last_os_error()),
        false => Ok(()),
    }
}

fn make_memory(bytes: usize) -> io::Result<OwnedFd> {
    // SAFETY: the name ends with a zero.
    let number = unsafe { libc::memfd_create(MEMORY_NAME.as_ptr(), libc::MFD_CLOEXEC) };
    if number < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: nobody else has it.
    let memory = unsafe { OwnedFd::from_raw_fd(number) };
    // SAFETY: no memory is passed.
    match unsafe { libc::ftruncate(number, bytes.next_multiple_of(PAGE_BYTES) as i64) } {
        0 => Ok(memory),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Copies all of one memory into another.
pub fn copy(from: &RingMemory, to: &RingMemory, bytes: usize) {
    let mut some = [0; 1024];
    for at in (0..bytes).step_by(some.len()) {
        let step = some.len().min(bytes - at);
        if let Some(some) = some.get_mut(..step) {
            from.read(at, some);
            to.write(at, some);
        }
    }
}

/// What a list of numbers has of ours.
///
/// # Safety
/// There are so many at `at`.
pub unsafe fn any_is_ours(at: *const c_int, count: c_uint) -> bool {
    // SAFETY: as the caller says.
    !at.is_null()
        && unsafe { slice::from_raw_parts(at, count as usize) }
            .iter()
            .any(|one| is_ours(*one))
}
