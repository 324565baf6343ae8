//! liburing's own memory of a ring (**Layout**), and what its functions do with it.

use std::ffi::{c_int, c_uint, c_void};
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};

use uring::{Geometry, SqFlags};

use crate::uring::{abi, table};

/// `struct io_uring_sq` (**Layout**).
#[repr(C)]
pub struct Submissions {
    head: *mut c_uint,
    tail: *mut c_uint,
    ring_mask_at: *mut c_uint,
    ring_entries_at: *mut c_uint,
    flags: *mut c_uint,
    dropped: *mut c_uint,
    array: *mut c_uint,
    entries: *mut c_void,
    taken: c_uint,
    given: c_uint,
    ring_bytes: usize,
    ring: *mut c_void,
    ring_mask: c_uint,
    ring_entries: c_uint,
    pad: [c_uint; 2],
}

/// `struct io_uring_cq` (**Layout**).
#[repr(C)]
pub struct Completions {
    pub head: *mut c_uint,
    tail: *mut c_uint,
    ring_mask_at: *mut c_uint,
    ring_entries_at: *mut c_uint,
    flags: *mut c_uint,
    overflow: *mut c_uint,
    pub completions: *mut Cqe,
    ring_bytes: usize,
    ring: *mut c_void,
    pub ring_mask: c_uint,
    ring_entries: c_uint,
    pad: [c_uint; 2],
}

/// `struct io_uring_cqe`.
#[repr(C)]
pub struct Cqe([u64; 2]);

/// `struct io_uring` (**Layout**).
#[repr(C)]
pub struct IoUring {
    submissions: Submissions,
    pub completions: Completions,
    flags: c_uint,
    pub number: c_int,
    features: c_uint,
    entered_by: c_int,
    own_flags: u8,
    pad: [u8; 3],
    pad2: c_uint,
}

impl IoUring {
    /// What the kernel is to know of entries that were given: their indices, and how many there are.
    ///
    /// # Safety
    /// **Caller**.
    pub unsafe fn publish(&mut self) -> c_uint {
        let all = &mut self.submissions;
        // SAFETY: **Caller**: the pointers lead into the ring.
        unsafe {
            let mut tail = all.tail.read();
            while all.taken != all.given {
                let place = all.array.add((tail & all.ring_mask) as usize);
                place.write(all.taken & all.ring_mask);
                (tail, all.taken) = (tail.wrapping_add(1), all.taken.wrapping_add(1));
            }
            word(all.tail).store(tail, Ordering::Release);
            tail.wrapping_sub(word(all.head).load(Ordering::Acquire))
        }
    }

    /// The first completion that was not taken, and how many there are.
    ///
    /// # Safety
    /// **Caller**.
    pub unsafe fn peek(&self) -> (*mut Cqe, c_uint) {
        let all = &self.completions;
        // SAFETY: **Caller**.
        unsafe {
            let head = all.head.read();
            let tail = word(all.tail).load(Ordering::Acquire);
            match tail.wrapping_sub(head) {
                0 => (ptr::null_mut(), 0),
                count => (all.completions.add((head & all.ring_mask) as usize), count),
            }
        }
    }

    /// # Safety
    /// **Caller**.
    pub unsafe fn has_overflow(&self) -> bool {
        // SAFETY: **Caller**.
        let flags = unsafe { word(self.submissions.flags) };
        let flags = flags.load(Ordering::Relaxed);
        flags & (SqFlags::CQ_OVERFLOW | SqFlags::TASKRUN).bits() != 0
    }

    /// A ring of the kernel's is known from now on.
    pub fn learn(&self) {
        let (sq, cq) = (&self.submissions, &self.completions);
        let geometry = Geometry::check(sq.ring_entries, Some(cq.ring_entries), false);
        table::know(self.number, self.flags, geometry.ok());
        let maps = [
            (abi::OFF_SQ_RING, sq.ring, sq.ring_bytes),
            (abi::OFF_CQ_RING, cq.ring, cq.ring_bytes),
        ];
        let sqe_bytes = geometry.map_or(0, |geometry| geometry.sqe_bytes());
        let entries = [(abi::OFF_SQES, sq.entries, sqe_bytes)];
        for (offset, start, bytes) in maps.into_iter().chain(entries) {
            // Both rings lie in one mapping, where the kernel says so.
            if offset != abi::OFF_CQ_RING || start != sq.ring {
                table::note_mapping(self.number, offset, start.cast(), bytes);
            }
        }
    }
}

/// # Safety
/// It is a word of a ring.
unsafe fn word<'a>(at: *mut c_uint) -> &'a AtomicU32 {
    // SAFETY: as the caller says.
    unsafe { AtomicU32::from_ptr(at) }
}

const _: () = assert!(size_of::<IoUring>() == 216);
