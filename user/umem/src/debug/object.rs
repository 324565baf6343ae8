//! The header and the red zone around each allocation.

use core::ptr::NonNull;

use super::log::{self, Event};
use super::quarantine;
use super::stack::Stack;
use crate::report::Line;
use crate::{plain, report, settings};

const ALLOCATED: u64 = 0xa110_c8ed_a110_c8ed;
const FREED: u64 = 0xf4ee_f4ee_f4ee_f4ee;
/// What a red zone, fresh and freed memory hold.
const RED: [u8; 8] = 0xfeed_face_feed_face_u64.to_le_bytes();
const FRESH: [u8; 4] = 0xbadd_cafe_u32.to_le_bytes();
const DEAD: [u8; 4] = 0xdead_beef_u32.to_le_bytes();

const _: () = assert!(
    size_of::<Header>() == size_of::<usize>() * 4 + 2 * size_of::<Stack>() + 16,
    "the guard is last"
);

/// Lies right in front of an allocation.
#[repr(C, align(16))]
pub struct Header {
    base: NonNull<u8>,
    size: usize,
    /// Bytes from `base` to the end of the red zone.
    whole: usize,
    allocated: Stack,
    freed: Stack,
    /// `ALLOCATED` or `FREED`, mixed with the address.
    state: u64,
    guard: [[u8; 8]; 2],
}

impl Header {
    /// The header of an allocation.
    pub fn of(memory: NonNull<u8>) -> &'static mut Self {
        // SAFETY: **Debug**: each allocation has a header, in memory that is ours.
        unsafe { memory.cast::<Self>().sub(1).as_mut() }
    }

    /// Writes header and red zone.
    ///
    /// # Safety
    /// `whole` bytes from `base` on are ours; in front of `memory` there is room.
    pub unsafe fn write(memory: NonNull<u8>, base: NonNull<u8>, size: usize, whole: usize) {
        let allocated = Stack::capture();
        log::note(Event::Allocated, memory, whole, allocated);
        let header = Self {
            base,
            size,
            whole,
            allocated,
            freed: Stack::none(),
            state: ALLOCATED ^ memory.addr().get() as u64,
            guard: [RED; 2],
        };
        // SAFETY: the caller's promise.
        unsafe { memory.cast::<Self>().sub(1).write(header) };
        fill(memory, Self::checked_bytes(size), FRESH);
        let zone = Self::of(memory).red_zone(memory);
        zone.iter_mut()
            .zip(RED.iter().cycle())
            .for_each(|(byte, &red)| *byte = red);
    }

    /// Bytes that were asked for.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Where the memory below the header begins.
    pub fn base(&self) -> NonNull<u8> {
        self.base
    }

    fn red_zone(&self, memory: NonNull<u8>) -> &'static mut [u8] {
        let end = self.base.addr().get() + self.whole;
        let start = memory.as_ptr().wrapping_add(self.size);
        // At most this much is looked at: the end of a long span is far.
        let bytes = (end - start.addr()).min(64);
        // SAFETY: it lies between the allocation and the end of what is ours.
        unsafe { core::slice::from_raw_parts_mut(start, bytes) }
    }

    /// Bytes that are filled when they are allocated and freed: with guards all of them,
    /// unless they are too many to wait in the queue.
    fn checked_bytes(size: usize) -> usize {
        let debug = settings::debug();
        match debug.guards && size <= quarantine::LONGEST {
            true => size,
            false => size.min(debug.contents_bytes),
        }
    }

    /// Ends the program if `memory` is not allocated or something wrote around it.
    pub fn check(memory: NonNull<u8>) {
        if !plain::is_known(memory) {
            super::unknown_address(memory.addr().get());
        }
        let header = Self::of(memory);
        let state = header.state ^ memory.addr().get() as u64;
        if state == FREED {
            header.fail("double free", memory, 0);
        }
        if state != ALLOCATED || header.guard != [RED; 2] {
            super::damaged_header(memory.addr().get());
        }
        if !settings::debug().guards {
            return;
        }
        let zone = header.red_zone(memory);
        let mut pairs = zone.iter().zip(RED.iter().cycle());
        if let Some(at) = pairs.position(|(byte, red)| byte != red) {
            header.fail("write past the end", memory, header.size + at);
        }
    }

    /// Notes who freed it, and fills it.
    pub fn mark_freed(memory: NonNull<u8>) {
        let header = Self::of(memory);
        header.state = FREED ^ memory.addr().get() as u64;
        header.freed = Stack::capture();
        log::note(Event::Freed, memory, header.whole, header.freed);
        fill(memory, Self::checked_bytes(header.size), DEAD);
    }

    /// Ends the program if somebody wrote to a freed allocation.
    pub fn check_freed(memory: NonNull<u8>) {
        let header = Self::of(memory);
        if header.state != FREED ^ memory.addr().get() as u64 {
            super::damaged_header(memory.addr().get());
        }
        for at in 0..Self::checked_bytes(header.size) {
            // SAFETY: the bytes belong to the allocation, which is ours now.
            if unsafe { memory.add(at).read() } != DEAD[at % 4] {
                header.fail("write after free", memory, at);
            }
        }
    }

    fn fail(&self, what: &str, memory: NonNull<u8>, offset: usize) -> ! {
        Line::new()
            .text("umem: ")
            .text(what)
            .text(": object ")
            .address(memory.addr().get())
            .text(" of ")
            .number(self.size, 10)
            .text(" bytes, offset ")
            .number(offset, 10)
            .text(", cache ")
            .text(plain::cache_prefix(self.base))
            .number(self.whole, 10)
            .text("\n")
            .write();
        self.allocated.print("allocated by");
        self.freed.print("freed by");
        Stack::capture().print("found by");
        log::print(memory.addr().get());
        report::abort()
    }
}

fn fill(memory: NonNull<u8>, bytes: usize, pattern: [u8; 4]) {
    for at in 0..bytes {
        // SAFETY: the callers fill allocations of their own.
        unsafe { memory.add(at).write(pattern[at % 4]) };
    }
}
