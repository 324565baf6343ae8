//! Where a new program's things go.
//!
//! ```text
//! 0x5555_5555_4000 + random   program (PIE), then its heap
//!          mappings, from the top down
//! mmap_top                    below the room that the stack may grow into
//! stack_top = end of the user half - random
//! ```

use base::{PAGE_BYTES, VirtAddr};
use mach::mem::USER_END;
use vma::Window;

/// Nothing is mapped below, so that a null pointer with an offset faults.
const LOWEST: VirtAddr = VirtAddr(1 << 16);
const PIE_BASE: u64 = 0x5555_5555_4000;
/// Random pages in front of the program, the mappings and the stack: 16 GiB.
const RANDOM_PAGES: u64 = 1 << 22;
/// Random pages between the program and its heap: 32 MiB.
const RANDOM_HEAP_PAGES: u64 = 1 << 13;
/// Room for the stack: at least this, whatever its limit.
const STACK_ROOM_MIN: u64 = 128 << 20;
const STACK_ROOM_MAX: u64 = 1 << 40;

/// The addresses that are chosen when a program starts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Layout {
    /// Where an executable goes that can go anywhere.
    pub program: VirtAddr,
    /// Bytes between the end of the program and its heap.
    pub heap_gap: u64,
    /// The end of the stack.
    pub stack_top: VirtAddr,
    /// The end of the room for mappings.
    pub mmap_top: VirtAddr,
}

impl Layout {
    /// Places by `random`, with room for a stack of `stack_limit` bytes; by zeros, each program
    /// finds the same.
    pub fn random(random: [u64; 4], stack_limit: u64) -> Self {
        let pages = |word: u64, count: u64| word % count * PAGE_BYTES as u64;
        let stack_top = VirtAddr(USER_END.0 - pages(random[0], RANDOM_PAGES));
        let room = stack_limit.clamp(STACK_ROOM_MIN, STACK_ROOM_MAX);
        let mmap_top = stack_top.0 - room - pages(random[1], RANDOM_PAGES);
        Self {
            program: VirtAddr(PIE_BASE + pages(random[2], RANDOM_PAGES)),
            heap_gap: pages(random[3], RANDOM_HEAP_PAGES),
            stack_top,
            mmap_top: VirtAddr(mmap_top).page_floor(),
        }
    }

    /// Where mappings go that nobody placed.
    pub(super) fn window(&self) -> Window {
        Window {
            low: LOWEST,
            high: self.mmap_top,
        }
    }
}

/// Where a program may place a mapping itself.
pub(super) const ANYWHERE: Window = Window {
    low: LOWEST,
    high: USER_END,
};
