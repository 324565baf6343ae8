//! Kernel stacks: 16 KiB each, with an unmapped gap below, so that an overflow faults
//! instead of writing over somebody's memory.
//!
//! A stack that is given back keeps its address and its frames and serves the next
//! thread, until many rest or memory is short: then [`trim`] takes their frames. A few rest with
//! the CPU that was given them, which needs no other CPU's lock as long as it starts about as many
//! threads as end there.
//!
//! Invariant **Resting**: a stack in the pool is mapped and nobody's; its last word holds
//! the top of the next one in the pool, 0 at the end. So giving back needs no memory.

use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use base::{PAGE_BYTES, PhysAddr};
use frames::{Extent, FrameNo};

use super::{kernel_map, kernel_tlb, ram};
use crate::cpu::{self, MAX_CPUS};
use crate::sync::Spin;

/// Bytes of a kernel stack.
pub const STACK_BYTES: usize = 4 * PAGE_BYTES;
/// Address space of one stack: the upper half is mapped.
const SLOT_BYTES: u64 = 2 * STACK_BYTES as u64;
/// Address space of all stacks: one top-level entry.
const AREA_BYTES: u64 = 1 << 39;

const STACK_PAGES: usize = STACK_BYTES / PAGE_BYTES;
/// Resting stacks may take one frame in this many.
const RESTING_SHARE: u64 = 64;
/// Stacks that rest with a CPU.
const OWN_MAX: usize = 8;
/// Stacks that one round of [`trim`] takes.
const TRIM_BATCH: usize = 64;

struct Pool {
    /// Top of the first resting stack; 0 for none.
    resting: u64,
    /// How many rest.
    count: usize,
    /// Ends of slots whose memory was taken.
    bare: Vec<u64>,
}

/// A CPU's own, on a cache line of its own.
#[repr(align(64))]
struct Line(Spin<Pool>);

/// Stacks that threads left lie in the kernel's half, for whichever comes on any CPU.
static POOL: Spin<Pool> = Spin::new(Pool::new());
/// Each CPU's own.
static OWN: [Line; MAX_CPUS] = [const { Line(Spin::new(Pool::new())) }; MAX_CPUS];
/// Stacks in all pools.
static RESTING: AtomicU64 = AtomicU64::new(0);
/// The first place in the kernel's half that no stack ever had.
static NEXT: AtomicU64 = AtomicU64::new(kernel_map::STACKS);

impl Pool {
    const fn new() -> Self {
        Self {
            resting: 0,
            count: 0,
            bare: Vec::new(),
        }
    }

    fn put(&mut self, top: u64) {
        // SAFETY: **Resting**: the stack is mapped, and its owner gave it up.
        unsafe { last_word(top).write(self.resting) };
        self.resting = top;
        self.count += 1;
        RESTING.fetch_add(1, Relaxed);
    }

    fn take(&mut self) -> Option<u64> {
        if self.resting == 0 {
            return None;
        }
        let top = self.resting;
        // SAFETY: **Resting**.
        self.resting = unsafe { last_word(top).read() };
        self.count -= 1;
        RESTING.fetch_sub(1, Relaxed);
        Some(top)
    }
}

fn own() -> &'static Spin<Pool> {
    &OWN[cpu::id().index()].0
}

fn put(top: u64) {
    let mut own = own().lock();
    if own.count < OWN_MAX {
        return own.put(top);
    }
    drop(own);
    POOL.lock().put(top);
}

fn take() -> Option<u64> {
    let own = own().lock().take();
    own.or_else(|| POOL.lock().take())
}

/// One that rests with any CPU.
fn take_any() -> Option<u64> {
    let shared = POOL.lock().take();
    shared.or_else(|| OWN.iter().find_map(|own| own.0.lock().take()))
}

fn last_word(top: u64) -> *mut u64 {
    core::ptr::with_exposed_provenance_mut(top as usize - size_of::<u64>())
}

/// A stack that its owner alone uses.
#[derive(Debug)]
pub struct KernelStack {
    top: u64,
}

impl KernelStack {
    /// A stack with any content; `None` when memory is short.
    pub fn new() -> Option<Self> {
        take().or_else(map_new).map(|top| Self { top })
    }

    /// The address behind its last byte, where an empty stack starts.
    pub fn top(&self) -> u64 {
        self.top
    }
}

impl Drop for KernelStack {
    fn drop(&mut self) {
        put(self.top);
    }
}

/// The end of the stack in whose mapped part `at` lies.
pub(crate) fn top(at: u64) -> Option<u64> {
    let offset = at.checked_sub(kernel_map::STACKS)?;
    let is_mapped = offset < AREA_BYTES && offset % SLOT_BYTES >= SLOT_BYTES - STACK_BYTES as u64;
    is_mapped.then(|| kernel_map::STACKS + (offset / SLOT_BYTES + 1) * SLOT_BYTES)
}

/// Whether `at` is in the gap below a stack: what overflows touches that first.
pub(crate) fn is_below(at: u64) -> bool {
    let offset = at.checked_sub(kernel_map::STACKS);
    let is_gap =
        |offset| offset < AREA_BYTES && offset % SLOT_BYTES < SLOT_BYTES - STACK_BYTES as u64;
    offset.is_some_and(is_gap)
}

#[cold]
fn map_new() -> Option<u64> {
    let top = new_slot()?;
    let frames = ram::alloc_user_extent(STACK_PAGES as u64);
    let mapped = frames.and_then(|frames| {
        let at: PhysAddr = frames.base();
        let bottom = top - STACK_BYTES as u64;
        match kernel_map::add(bottom, at, STACK_BYTES, kernel_map::DATA) {
            // The stack keeps the frames.
            Some(()) => Some(frames.into_parts()),
            None => {
                ram::free_extent(frames);
                None
            }
        }
    });
    if mapped.is_none() {
        keep_bare(top);
    }
    mapped.map(|_| top)
}

/// The end of a slot without memory.
fn new_slot() -> Option<u64> {
    if let Some(top) = POOL.lock().bare.pop() {
        return Some(top);
    }
    let top = NEXT.fetch_add(SLOT_BYTES, Relaxed) + SLOT_BYTES;
    (top <= kernel_map::STACKS + AREA_BYTES).then_some(top)
}

/// Remembers a slot without memory; without room for that its addresses are lost.
fn keep_bare(top: u64) {
    let mut pool = POOL.lock();
    if pool.bare.try_reserve(1).is_ok() {
        pool.bare.push(top);
    }
}

/// Whether stacks that nobody uses take more than a small share of memory.
#[inline]
pub(super) fn pile_up() -> bool {
    RESTING.load(Relaxed) * STACK_PAGES as u64 > ram::total_frames() / RESTING_SHARE
}

/// Bytes of stacks that nobody uses.
pub(super) fn resting_bytes() -> u64 {
    RESTING.load(Relaxed) * STACK_BYTES as u64
}

/// Gives back the frames of the stacks that nobody uses. The caller holds no lock.
pub(super) fn trim(pause: &mut dyn FnMut()) {
    loop {
        let mut taken: [(u64, FrameNo); TRIM_BATCH] = [(0, 0); TRIM_BATCH];
        let mut count = 0;
        while count < TRIM_BATCH
            && let Some(top) = take_any()
        {
            let bottom = top - STACK_BYTES as u64;
            if let Some(first) = kernel_map::remove(bottom, STACK_PAGES) {
                taken[count] = (top, first);
                count += 1;
            }
        }
        if count == 0 {
            return;
        }
        kernel_tlb::forget_everywhere();
        for &(top, first) in &taken[..count] {
            ram::free_extent(Extent::from_parts(first, STACK_PAGES as u64));
            keep_bare(top);
        }
        pause();
    }
}
