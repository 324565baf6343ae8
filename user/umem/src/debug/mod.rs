//! `UMEM_DEBUG`: errors are found where they happen, and reported with their history.
//!
//! With any of `default`, `audit`, `contents` or `guards`, threads get no magazines, so
//! every call takes the slow path and comes here. Each allocation lies between a header
//! and a red zone ([`object`]). Freed ones are filled and wait in a queue ([`quarantine`])
//! before their memory is used again: who writes to one meanwhile, or frees it again, is
//! found. `audit` notes the stack of each allocation and release ([`stack`]), and with
//! `UMEM_LOGGING=transaction` keeps them in a ring ([`log`]).
//!
//! Invariant **Debug**: the mode is decided before the first allocation and never changes, so
//! in this mode every allocation has a header.

mod log;
mod object;
mod quarantine;
mod stack;

use core::ptr::{self, NonNull};

use crate::lock::Lock;
use crate::report::Line;
use crate::{map, plain, report, settings};

use log::print as print_log;
use object::Header;

/// What all threads share. A report is made without its lock, which it takes itself.
struct State {
    queue: quarantine::Queue,
    log: log::Log,
}

static STATE: Lock<State> = Lock::new(State {
    queue: quarantine::Queue::new(),
    log: log::Log::new(),
});

/// Bytes in front of an allocation with the least alignment.
const FRONT: usize = size_of::<Header>();
/// Bytes of the red zone, at least.
const RED_ZONE: usize = 16;

/// Allocates `size` bytes at a multiple of `align`.
pub fn malloc(align: usize, size: usize) -> *mut u8 {
    let front = FRONT.max(align);
    let Some(whole) = size.checked_add(front + RED_ZONE) else {
        return plain::refuse();
    };
    let Some(base) = NonNull::new(plain::aligned(align.max(16), whole)) else {
        return ptr::null_mut();
    };
    let memory = base.map_addr(|address| address.saturating_add(front));
    // SAFETY: the object is ours and has room for `front` bytes in front of `memory`.
    unsafe { Header::write(memory, base, size, plain::usable(base)) };
    if map::look_up(memory.as_ptr()) == map::NOTHING {
        map::set(memory.as_ptr(), 1, map::INSIDE);
    }
    memory.as_ptr()
}

/// Gives the memory of a freed allocation back.
fn dispose(memory: NonNull<u8>) {
    if map::look_up(memory.as_ptr()) == map::INSIDE {
        map::set(memory.as_ptr(), 1, map::NOTHING);
    }
    plain::free(Header::of(memory).base());
}

/// Runs when the program ends: who wrote to freed memory is found at the latest now.
#[used]
#[unsafe(link_section = ".fini_array")]
static AT_EXIT: extern "C" fn() = at_exit;

extern "C" fn at_exit() {
    if is_on() {
        quarantine::check_all();
    }
}

/// Takes an allocation back, and ends the program with a report if it is damaged.
pub fn free(memory: NonNull<u8>) {
    Header::check(memory);
    Header::mark_freed(memory);
    quarantine::put(memory);
}

/// Bytes that were asked for: more may not be used.
pub fn usable(memory: NonNull<u8>) -> usize {
    Header::check(memory);
    Header::of(memory).size()
}

/// Whether this mode is on.
pub fn is_on() -> bool {
    settings::debug().is_on()
}

/// Ends the program: an address was freed that was never allocated, or is free already.
#[cold]
pub fn unknown_address(address: usize) -> ! {
    Line::new()
        .text("umem: free of ")
        .address(address)
        .text(", which is not allocated\n")
        .write();
    print_log(address);
    report::abort()
}

/// Ends the program: what lies in front of an allocation was overwritten.
#[cold]
pub fn damaged_header(address: usize) -> ! {
    Line::new()
        .text("umem: something wrote in front of ")
        .address(address)
        .text(", or it is not the start of an allocation\n")
        .write();
    print_log(address);
    report::abort()
}

/// For `fork`.
pub fn acquire() {
    STATE.acquire();
}

/// For `fork`.
pub fn release() {
    STATE.release();
}
