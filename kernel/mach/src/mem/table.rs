//! A program's page table.

use core::ops::{ControlFlow, Range};
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use base::{PAGE_BYTES, VirtAddr};

use super::entry::{
    self, ACCESSED, CACHING, DIRTY, HELD, LARGE, Mapping, PRESENT, Prot, WRITE, ZEROS,
};
use super::user::USER_END;
pub use super::walk::NoLeaf;
use super::walk::{self, ENTRIES, Part, Size, Tree};
use super::{Gather, Leaf, Page, kernel_map, large, ram, tlb};
use crate::sync::Spin;

/// Last-level tables and large pages that are changed at a time.
const PIECE_PARTS: u64 = 2;
/// What they map at most.
pub const PIECE_BYTES: u64 = PIECE_PARTS << 21;

/// The pages of one address space, as the processor sees them.
///
/// Ranges are clipped to the user half. All methods may be called by any CPU at any
/// time; what a range means while two callers change it is for them to agree on.
#[derive(Debug)]
pub struct PageTable {
    pub(super) tree: Spin<Tree>,
    pub(super) id: tlb::SpaceId,
    pub(super) resident: AtomicUsize,
}

impl PageTable {
    /// An empty table that shares the kernel's half; `None` when memory is short.
    pub fn new() -> Option<Self> {
        let root = walk::new_table()?;
        kernel_map::share_kernel_half(root);
        // SAFETY: the root is new, and its upper half is never walked by user ranges.
        let tree = unsafe { Tree::new(root) };
        Some(Self {
            tree: Spin::new(tree),
            id: tlb::SpaceId::new(root),
            resident: AtomicUsize::new(0),
        })
    }

    /// Makes this the table of the running CPU; cheap if it is already.
    ///
    /// Dropping the table while CPUs use it is allowed: they move to the kernel's.
    #[inline]
    pub fn activate(&self) {
        tlb::activate(&self.id);
    }

    /// Pages that the table maps.
    pub fn resident(&self) -> usize {
        self.resident.load(Relaxed)
    }

    /// Calls `work` with the entries around `at`, making the tables on the way.
    #[inline]
    pub fn with_leaf<R>(
        &self,
        at: VirtAddr,
        work: impl FnOnce(&Leaf<'_>) -> R,
    ) -> Result<R, NoLeaf> {
        if at >= USER_END {
            return Err(NoLeaf::NoMemory);
        }
        let mut tree = self.tree.lock();
        let slots = match tree.leaf_table(at) {
            Ok(slots) => slots,
            Err(why) => {
                // A large page permits what its area does: this CPU did not know yet.
                arch::instr::invlpg(at.0);
                return Err(why);
            }
        };
        let first = VirtAddr(at.0 & !(walk::span(1) - 1));
        Ok(work(&Leaf::new(self, &self.resident, slots, first)))
    }

    /// The end of a piece of `[from, to)`, from `from` on, that maps at most
    /// [`PIECE_BYTES`]: what a caller changes at a time, so that it does not hold its lock and
    /// the CPU for as long as a program chooses. The cost follows the tables that exist.
    pub fn piece_end(&self, from: VirtAddr, to: VirtAddr) -> VirtAddr {
        if to.0.saturating_sub(from.0) <= PIECE_BYTES {
            return to;
        }
        let mut left = PIECE_PARTS;
        let mut end = to;
        let tree = self.tree.lock();
        let _ = tree.try_for_each_part(from, clip(to), &mut |part| {
            if left == 0 {
                end = match part {
                    Part::Small(start, _) => start,
                    Part::Large(range, _) => range.start,
                };
                return ControlFlow::Break(());
            }
            left -= 1;
            ControlFlow::Continue(())
        });
        end
    }

    /// Clears all entries of the range; the pages go to `gather`, large ones at once.
    pub fn unmap(&self, from: VirtAddr, to: VirtAddr, gather: &mut Gather) {
        let mut tree = self.tree.lock();
        self.split_ends(&mut tree, &(from..to));
        let (mut gone, mut large) = (0, 0);
        tree.for_each(from, clip(to), &mut |size, range, slot| {
            let old = slot.swap(0, Relaxed);
            if size == Size::Large {
                gather.note(range.start);
                gather.flush();
                large::release(old);
                large += 1;
            } else if entry::owns_page(old) {
                gather.push(range.start, Page::from_frame(entry::frame(old)));
                gone += 1;
            } else {
                gather.note(range.start);
            }
        });
        tree.forget_large(large);
        tree.trim_spares(gather);
        self.resident.fetch_sub(gone + large * ENTRIES, Relaxed);
    }

    /// Changes the permissions of the pages in the range. Where `keep_shared` holds,
    /// pages with other owners stay read-only (copy on write is still to come).
    pub fn protect(
        &self,
        from: VirtAddr,
        to: VirtAddr,
        prot: Prot,
        keep_shared: bool,
        gather: &mut Gather,
    ) {
        let mut tree = self.tree.lock();
        if prot == Prot::NONE {
            self.split_range(&mut tree, from..to);
        } else {
            self.split_ends(&mut tree, &(from..to));
        }
        tree.for_each(from, clip(to), &mut |size, range, slot| {
            let old = slot.load(Relaxed);
            let is_small = size == Size::Small;
            let cow = is_small && (old & ZEROS != 0 || keep_shared && is_shared(old));
            let prot = if cow { prot.without_write() } else { prot };
            set_bits(slot, old, prot.bits());
            if loses_rights(old, prot.bits()) {
                gather.note(range.start);
            }
        });
    }

    /// The page at `at`, shared with the caller.
    pub fn page(&self, at: VirtAddr) -> Option<Page> {
        let tree = self.tree.lock();
        look_at(tree.small_entry(at)?, |_, page| page.clone())
    }

    /// The page at `at`, shared with the caller, and how it is mapped.
    pub fn mapped(&self, at: VirtAddr) -> Option<(Page, Mapping)> {
        let tree = self.tree.lock();
        look_at(tree.small_entry(at)?, |entry, page| {
            let mapping = describe(entry, page);
            (page.clone(), mapping)
        })
    }

    /// Visits the mapped pages of a range in order, large ones as the small ones in them.
    pub fn for_each(
        &self,
        from: VirtAddr,
        to: VirtAddr,
        visit: &mut dyn FnMut(VirtAddr, &Page, Mapping),
    ) {
        let tree = self.tree.lock();
        tree.for_each(from, clip(to), &mut |size, range, slot| {
            let entry = slot.load(Relaxed);
            let pages = (range.end - range.start) as usize / PAGE_BYTES;
            for number in 0..pages {
                let at = range.start + (number * PAGE_BYTES) as u64;
                let small = match size {
                    Size::Small => entry,
                    Size::Large => large::small(entry, walk::index(at, 0)),
                };
                look_at(small, |small, page| {
                    let large = size == Size::Large;
                    let mapping = describe(small, page);
                    visit(at, page, Mapping { large, ..mapping });
                });
            }
        });
    }

    /// Gives back the pages of ascending ranges, at once: no CPU uses the table any more,
    /// or it leaves it now. Cheaper than to drop the table with its pages, which looks for
    /// them everywhere.
    pub fn clear(&mut self, ranges: impl Iterator<Item = Range<VirtAddr>>) {
        tlb::evict(&self.id);
        for range in ranges {
            if *self.resident.get_mut() == 0 {
                return;
            }
            let mut tree = self.tree.lock();
            self.split_ends(&mut tree, &range);
            let (mut gone, mut large) = (0, 0);
            tree.for_each(range.start, clip(range.end), &mut |size, _, slot| {
                let entry = slot.swap(0, Relaxed);
                if size == Size::Large {
                    large::release(entry);
                    large += 1;
                } else if entry::owns_page(entry) {
                    drop(Page::from_frame(entry::frame(entry)));
                    gone += 1;
                }
            });
            tree.forget_large(large);
            self.resident.fetch_sub(gone + large * ENTRIES, Relaxed);
        }
    }
}

impl PageTable {
    /// As dropping it. Calls `pause` now and then, without a lock: there may be many tables.
    pub fn dissolve(mut self, pause: &mut dyn FnMut()) {
        self.clear([VirtAddr(0)..USER_END].into_iter());
        let tree = self.tree.get_mut();
        tree.unlink_all();
        while tree.free_some() {
            pause();
        }
    }
}

impl Drop for PageTable {
    fn drop(&mut self) {
        self.clear([VirtAddr(0)..USER_END].into_iter());
        // SAFETY: `clear` took the root off all CPUs; nobody has the table any more.
        unsafe { self.tree.get_mut().free() };
    }
}

pub(super) fn clip(to: VirtAddr) -> VirtAddr {
    to.min(USER_END)
}

/// Replaces the permissions of an entry, keeping its page and the processor's marks.
pub(super) fn set_bits(slot: &AtomicU64, old: u64, bits: u64) {
    let mut seen = old;
    loop {
        let marks = seen & (ACCESSED | DIRTY | CACHING | ZEROS | LARGE);
        let new = entry::link(entry::frame(seen), bits) | marks;
        match slot.compare_exchange(seen, new, Relaxed, Relaxed) {
            Ok(_) => return,
            Err(now) => seen = now,
        }
    }
}

fn loses_rights(old: u64, new: u64) -> bool {
    let granted = PRESENT | WRITE;
    old & granted & !new != 0 || (old ^ new) & entry::NO_EXECUTE & new != 0 && old & PRESENT != 0
}

fn is_shared(entry: u64) -> bool {
    ram::table().owners(entry::frame(entry)) > 1
}

pub(super) fn describe(entry: u64, page: &Page) -> Mapping {
    Mapping {
        present: entry & (PRESENT | HELD) == PRESENT,
        writable: entry & WRITE != 0,
        dirty: entry & DIRTY != 0,
        accessed: entry & ACCESSED != 0,
        shared: page.owners() > 1,
        zeros: entry & ZEROS != 0,
        large: false,
    }
}

/// Looks at the page of an entry without taking its claim.
pub(super) fn look_at<R>(entry: u64, look: impl FnOnce(u64, &Page) -> R) -> Option<R> {
    (entry & (PRESENT | HELD) != 0).then(|| {
        let page = core::mem::ManuallyDrop::new(Page::from_frame(entry::frame(entry)));
        look(entry, &page)
    })
}
