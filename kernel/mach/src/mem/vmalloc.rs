//! Memory for objects of the heap that are longer than the longest row of frames, as Linux's
//! vmalloc: tables that grow with what programs and peers do.
//!
//! The idea: blocks of 2 MiB from anywhere, mapped behind each other in an area of their
//! own. Places are powers of two in length, each length in its own part of the area, so an
//! address tells how long its place is; a place is filled as a whole.
//!
//! Memory is given back under any lock, where no CPU can be made to forget a mapping. So a
//! place keeps its blocks and serves the next who wants one, until many rest or memory is
//! short: then [`trim`] takes the blocks.
//!
//! Invariants:
//! - **Resting**: a place in the pool is mapped and nobody's; its first word holds the
//!   address of the next one in the pool, 0 at the end.
//! - **Chain**: the first word of a block that is not mapped holds the frame of the next
//!   block, [`END`] at the end. So neither taking nor giving back needs memory besides.
//!
//! Lock order: the pool's is taken alone.

use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use base::{PAGE_SHIFT, PhysAddr};
use frames::{Extent, FrameNo};

use super::{direct, kernel_map, kernel_tlb, ram};
use crate::sync::Spin;

/// Lengths of places: 8 MiB to 1 GiB, the reach of one table of large pages.
const SHORTEST_BYTES: u64 = 8 << 20;
const LENGTHS: usize = 8;
/// Address space for the places of one length; all together are one top-level entry.
const PART_BYTES: u64 = 1 << 36;

const BLOCK_BYTES: u64 = kernel_map::LARGE_BYTES;
const BLOCK_FRAMES: u64 = BLOCK_BYTES >> PAGE_SHIFT;
/// Behind the last block of a chain.
const END: FrameNo = FrameNo::MAX;
/// Resting places may take one frame in this many.
const RESTING_SHARE: u64 = 64;

/// The places of one length.
struct Part {
    /// Address of the first resting place; 0 for none.
    resting: u64,
    /// Places whose blocks were taken.
    bare: Vec<u64>,
    /// Bytes of the part that were ever given out.
    used: u64,
}

/// Places in the kernel's half, which is the same in all address spaces.
static POOL: Spin<[Part; LENGTHS]> = Spin::new(
    [const {
        Part {
            resting: 0,
            bare: Vec::new(),
            used: 0,
        }
    }; LENGTHS],
);
/// Frames of resting places. They are the pool's.
static RESTING: AtomicU64 = AtomicU64::new(0);

fn place_bytes(length: usize) -> u64 {
    SHORTEST_BYTES << length
}

fn pointer(at: u64) -> *mut u64 {
    core::ptr::with_exposed_provenance_mut(at as usize)
}

/// Memory of at least `bytes` bytes with any content, aligned to its length; `None` when
/// memory is short or for more than 1 GiB. It is the caller's alone.
pub(super) fn alloc(bytes: u64) -> Option<*mut u8> {
    let length = (0..LENGTHS).find(|&length| place_bytes(length) >= bytes)?;
    let recycled = take_resting(length);
    let at = recycled.or_else(|| map_new(length))?;
    Some(pointer(at).cast())
}

/// Whether [`alloc`] gave this.
pub(super) fn holds(memory: *mut u8) -> bool {
    let offset = (memory.addr() as u64).wrapping_sub(kernel_map::SCATTERED);
    offset < LENGTHS as u64 * PART_BYTES
}

/// Takes back what [`alloc`] gave.
pub(super) fn free(memory: *mut u8) {
    let at = memory.expose_provenance() as u64;
    let length = ((at - kernel_map::SCATTERED) / PART_BYTES) as usize;
    let mut pool = POOL.lock();
    // SAFETY: **Resting**: the place is mapped, and its owner gave it up.
    unsafe { pointer(at).write(pool[length].resting) };
    pool[length].resting = at;
    RESTING.fetch_add(place_bytes(length) >> PAGE_SHIFT, Relaxed);
}

fn take_resting(length: usize) -> Option<u64> {
    let mut pool = POOL.lock();
    let at = pool[length].resting;
    if at == 0 {
        return None;
    }
    // SAFETY: **Resting**.
    pool[length].resting = unsafe { pointer(at).read() };
    RESTING.fetch_sub(place_bytes(length) >> PAGE_SHIFT, Relaxed);
    Some(at)
}

fn map_new(length: usize) -> Option<u64> {
    let mut blocks = Chain::default();
    let mapped = new_place(length).and_then(|at| {
        let mut places = (at..at + place_bytes(length)).step_by(BLOCK_BYTES as usize);
        if places.clone().all(|_| blocks.add()) && places.all(|place| map(place, &mut blocks)) {
            return Some(at);
        }
        keep_bare(length, at);
        None
    });
    blocks.free();
    mapped
}

/// Maps one block of the chain at `place`. Only the first of a place can fail: it makes
/// the table for all.
fn map(place: u64, blocks: &mut Chain) -> bool {
    let Some(first) = blocks.take() else {
        return false;
    };
    let physical = PhysAddr(first << PAGE_SHIFT);
    let added = kernel_map::add(place, physical, BLOCK_BYTES as usize, kernel_map::DATA);
    if added.is_none() {
        blocks.put(first);
    }
    added.is_some()
}

/// The address of a place without memory.
fn new_place(length: usize) -> Option<u64> {
    let mut pool = POOL.lock();
    let part = &mut pool[length];
    if let Some(at) = part.bare.pop() {
        return Some(at);
    }
    let offset = part.used;
    if offset >= PART_BYTES {
        return None;
    }
    part.used += place_bytes(length);
    Some(kernel_map::SCATTERED + length as u64 * PART_BYTES + offset)
}

/// Remembers a place without memory; without room for that its addresses are lost.
fn keep_bare(length: usize, at: u64) {
    let bare = &mut POOL.lock()[length].bare;
    if bare.try_reserve(1).is_ok() {
        bare.push(at);
    }
}

/// Whether places that nobody uses take more than a small share of memory.
#[inline]
pub(super) fn pile_up() -> bool {
    RESTING.load(Relaxed) > ram::total_frames() / RESTING_SHARE
}

/// Bytes of places that nobody uses.
pub(super) fn resting_bytes() -> u64 {
    RESTING.load(Relaxed) << PAGE_SHIFT
}

/// Gives back the blocks of the places that nobody uses. The caller holds no lock.
pub(super) fn trim(pause: &mut dyn FnMut()) {
    for length in 0..LENGTHS {
        while let Some(at) = take_resting(length) {
            let mut blocks = Chain::default();
            for place in (at..at + place_bytes(length)).step_by(BLOCK_BYTES as usize) {
                if let Some(first) = kernel_map::remove_large(place) {
                    blocks.put(first);
                }
            }
            kernel_tlb::forget_everywhere();
            blocks.free();
            keep_bare(length, at);
            pause();
        }
    }
}

/// Blocks that are mapped nowhere but in the direct map.
struct Chain(FrameNo);

impl Default for Chain {
    fn default() -> Self {
        Self(END)
    }
}

impl Chain {
    /// Takes one more block from the allocator; false if there is none.
    fn add(&mut self) -> bool {
        let block = ram::alloc_user_extent(BLOCK_FRAMES);
        let first = block.map(|block| block.into_parts().0);
        first.map(|first| self.put(first)).is_some()
    }

    fn put(&mut self, first: FrameNo) {
        // SAFETY: **Claim**: the block is ours; **Direct** maps it.
        unsafe { direct::frame_pointer(first).cast::<FrameNo>().write(self.0) };
        self.0 = first;
    }

    fn take(&mut self) -> Option<FrameNo> {
        if self.0 == END {
            return None;
        }
        let first = self.0;
        // SAFETY: **Chain**, and as above.
        self.0 = unsafe { direct::frame_pointer(first).cast::<FrameNo>().read() };
        Some(first)
    }

    fn free(&mut self) {
        while let Some(first) = self.take() {
            ram::free_extent(Extent::from_parts(first, BLOCK_FRAMES));
        }
    }
}
