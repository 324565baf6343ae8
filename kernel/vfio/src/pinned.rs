//! Pages that a device may reach: the program's, pinned and counted.

use alloc::vec::Vec;

use base::{PAGE_BYTES, VirtAddr};
use mach::mem::Page;
use mm::pinned::{Budget, Held};
use mm::{garbage, user};
use sync::{Error, Result};
use vfio::Iova;

/// All memory that devices of programs reach, with the IOMMU's tables for it, is half of the
/// machine's at most.
static BUDGET: Budget = Budget::new(2);

/// Tables of a container's functions, none yet, which count as well.
pub const fn no_tables() -> Held {
    BUDGET.hold_none()
}

/// Pages, while devices may reach them.
pub struct Pinned {
    pages: Vec<Page>,
    _held: Held,
}

impl Pinned {
    /// Pins as many of the running program's pages from `at` on as `iova` has. May block.
    ///
    /// Errors: `OutOfMemory` beyond a limit, those of `AddressSpace::pin`.
    pub fn new(at: u64, iova: Iova) -> Result<Self> {
        let pages = (iova.bytes() / PAGE_BYTES as u64) as usize;
        let held = BUDGET.hold(pages, Error::OutOfMemory)?;
        let pages = user::space().pin(VirtAddr(at), iova.bytes())?;
        Ok(Self { pages, _held: held })
    }

    /// Where they lie.
    pub fn frames(&self) -> impl Iterator<Item = u64> {
        self.pages.iter().map(|page| page.phys().0)
    }

    /// Gives them back if no device reaches them any more; else they are nobody's for good
    /// (**Reached**).
    pub fn give_back(mut self, is_out: bool) {
        let pages = core::mem::take(&mut self.pages);
        match is_out {
            true => garbage::discard(pages),
            false => {
                mach::klog!("vfio: {} pages are kept for good", pages.len());
                core::mem::forget((pages, self));
            }
        }
    }
}
