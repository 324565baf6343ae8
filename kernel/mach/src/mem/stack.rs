//! Kernel stacks: 16 KiB each, with an unmapped gap below, so that an overflow faults
//! instead of writing over somebody's memory.
//!
//! A stack that is given back keeps its address and its frames and serves the next
//! thread; the pool is as large as the most threads there ever were at once.

use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use base::{PAGE_BYTES, PhysAddr};

use super::{kernel_map, ram};
use crate::sync::Spin;

/// Bytes of a kernel stack.
pub const STACK_BYTES: usize = 4 * PAGE_BYTES;
/// Address space of one stack: the upper half is mapped.
const SLOT_BYTES: u64 = 2 * STACK_BYTES as u64;
/// Address space of all stacks: one top-level entry.
const AREA_BYTES: u64 = 1 << 39;

static FREE: Spin<Vec<u64>> = Spin::new(Vec::new());
static NEXT: AtomicU64 = AtomicU64::new(kernel_map::STACKS);

/// A stack that its owner alone uses.
#[derive(Debug)]
pub struct KernelStack {
    top: u64,
}

impl KernelStack {
    /// A stack with any content; `None` when memory is short.
    pub fn new() -> Option<Self> {
        let recycled = FREE.lock().pop();
        recycled.or_else(map_new).map(|top| Self { top })
    }

    /// The address behind its last byte, where an empty stack starts.
    pub fn top(&self) -> u64 {
        self.top
    }
}

impl Drop for KernelStack {
    fn drop(&mut self) {
        FREE.lock().push(self.top);
    }
}

#[cold]
fn map_new() -> Option<u64> {
    // Room to give it back later: a drop can not fail.
    FREE.lock().try_reserve(1).ok()?;
    let slot = NEXT.fetch_add(SLOT_BYTES, Relaxed);
    if slot + SLOT_BYTES > kernel_map::STACKS + AREA_BYTES {
        return None;
    }
    let frames = ram::alloc_user_extent((STACK_BYTES / PAGE_BYTES) as u64)?;
    let bottom = slot + SLOT_BYTES - STACK_BYTES as u64;
    let at: PhysAddr = frames.base();
    let mapped = kernel_map::add(bottom, at, STACK_BYTES, kernel_map::DATA);
    if mapped.is_none() {
        ram::free_extent(frames);
        return None;
    }
    // The stack keeps the frames for good.
    let _ = frames.into_parts();
    Some(slot + SLOT_BYTES)
}
