//! When large pages are used.
//!
//! A program asks for them (`madvise(MADV_HUGEPAGE)`): then the first store to any aligned
//! 2 MiB of such memory brings all of it. Or it does not ask, and goes through fresh memory
//! page by page: then a [`Run`] that has touched 2 MiB and reaches the next ones gets
//! them as one page, while a quarter of the memory is free. So memory that nobody touches is
//! at most as much as the run has touched, as with small pages.
//!
//! Where no row of 512 frames is free, small pages do; the search rests for a while.

use core::sync::atomic::{AtomicU8, Ordering::Relaxed};

use base::VirtAddr;
use mach::mem::{LARGE_PAGE_BYTES, stats};
use vma::Area;

use super::run::Run;
use super::{AddressSpace, Object};

/// Who gets large pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LargePolicy {
    /// Runs, and who asks.
    Always,
    /// Who asks.
    OnAdvice,
    /// Nobody.
    Never,
}

/// The administrator's, for the whole machine; a program can say more for itself.
static POLICY: AtomicU8 = AtomicU8::new(LargePolicy::Always as u8);

impl LargePolicy {
    /// The machine's.
    pub fn current() -> Self {
        match POLICY.load(Relaxed) {
            0 => Self::Always,
            1 => Self::OnAdvice,
            _ => Self::Never,
        }
    }

    /// Makes it the machine's, for faults from now on.
    pub fn set(self) {
        POLICY.store(self as u8, Relaxed);
    }
}

/// Faults that try nothing after no large page was free.
const REST_FAULTS: u32 = 64;
/// A run gets large pages while one part in this many of the memory is free.
const FREE_PART: u64 = 4;

/// An address space's use of large pages.
#[derive(Clone, Copy, Default)]
pub(super) struct LargeUse {
    /// The program wants none (`PR_SET_THP_DISABLE`).
    pub refused: bool,
    rest: u32,
}

impl LargeUse {
    /// The start of the 2 MiB around `at` that a store there shall bring at once.
    pub fn block_for(&mut self, area: &Area<Object>, at: VirtAddr, run: Run) -> Option<VirtAddr> {
        let block = VirtAddr(at.0 & !(LARGE_PAGE_BYTES - 1));
        let fits = area.start <= block && area.end.0 - block.0 >= LARGE_PAGE_BYTES;
        if !fits || area.backing.is_some() || self.refused || area.traits.small_pages {
            return None;
        }
        let wanted = match LargePolicy::current() {
            LargePolicy::Never => false,
            _ if area.traits.large_pages => true,
            LargePolicy::OnAdvice => false,
            LargePolicy::Always => {
                at == block && run.bytes_before(at) >= LARGE_PAGE_BYTES && is_plenty_free()
            }
        };
        if wanted && self.rest > 0 {
            self.rest -= 1;
            return None;
        }
        wanted.then_some(block)
    }

    /// No large page was free.
    pub fn rest(&mut self) {
        self.rest = REST_FAULTS;
    }
}

fn is_plenty_free() -> bool {
    let memory = stats();
    memory.free > memory.total / FREE_PART
}

impl AddressSpace {
    /// Says whether the program may get large pages.
    pub fn allow_large_pages(&self, allow: bool) {
        self.lock().large.refused = !allow;
    }

    /// Whether the program may get large pages.
    pub fn allows_large_pages(&self) -> bool {
        !self.lock().large.refused
    }
}
