//! A program's page table.

use core::ops::Range;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use base::{PAGE_BYTES, VirtAddr};

use super::entry::{self, ACCESSED, CACHING, DIRTY, HELD, Mapping, PRESENT, Prot, WRITE, ZEROS};
use super::user::USER_END;
use super::walk::{self, Tree};
use super::{Gather, Leaf, Page, kernel_map, ram, tlb};
use crate::sync::Spin;

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

    /// Calls `work` with the entries around `at`, making the tables on the way; `None`
    /// when memory for them is short or `at` is no user address.
    #[inline]
    pub fn with_leaf<R>(&self, at: VirtAddr, work: impl FnOnce(&Leaf<'_>) -> R) -> Option<R> {
        if at >= USER_END {
            return None;
        }
        let mut tree = self.tree.lock();
        let slots = tree.leaf_table(at)?;
        let first = VirtAddr(at.0 & !(walk::span(1) - 1));
        Some(work(&Leaf::new(self, &self.resident, slots, first)))
    }

    /// Clears all entries of the range; the pages go to `gather`.
    pub fn unmap(&self, from: VirtAddr, to: VirtAddr, gather: &mut Gather) {
        let tree = self.tree.lock();
        let mut gone = 0;
        tree.for_each(from, clip(to), &mut |at, slot| {
            let old = slot.swap(0, Relaxed);
            if entry::owns_page(old) {
                gather.push(at, Page::from_frame(entry::frame(old)));
                gone += 1;
            } else {
                gather.note(at);
            }
        });
        self.resident.fetch_sub(gone, Relaxed);
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
        let tree = self.tree.lock();
        tree.for_each(from, clip(to), &mut |at, slot| {
            let old = slot.load(Relaxed);
            let cow = old & ZEROS != 0 || keep_shared && is_shared(old);
            let prot = if cow { prot.without_write() } else { prot };
            set_bits(slot, old, prot.bits());
            if loses_rights(old, prot.bits()) {
                gather.note(at);
            }
        });
    }

    /// The page at `at`, shared with the caller.
    pub fn page(&self, at: VirtAddr) -> Option<Page> {
        let tree = self.tree.lock();
        look_at(tree.find(at, 0)?.load(Relaxed), |_, page| page.clone())
    }

    /// Visits the mapped pages of a range in order.
    pub fn for_each(
        &self,
        from: VirtAddr,
        to: VirtAddr,
        visit: &mut dyn FnMut(VirtAddr, &Page, Mapping),
    ) {
        let tree = self.tree.lock();
        tree.for_each(from, clip(to), &mut |at, slot| {
            look_at(slot.load(Relaxed), |entry, page| {
                visit(at, page, describe(entry, page))
            });
        });
    }

    /// Gives back the pages of ascending ranges, at once: no CPU uses the table any more,
    /// or it leaves it now. Cheaper than to drop the table with its pages, which looks for
    /// them everywhere.
    pub fn clear(&mut self, ranges: impl Iterator<Item = Range<VirtAddr>>) {
        tlb::evict(&self.id);
        let (tree, resident) = (self.tree.get_mut(), self.resident.get_mut());
        for range in ranges {
            if *resident == 0 {
                return;
            }
            tree.for_each(range.start, clip(range.end), &mut |_, slot| {
                let entry = slot.swap(0, Relaxed);
                if entry::owns_page(entry) {
                    drop(Page::from_frame(entry::frame(entry)));
                    *resident -= 1;
                }
            });
        }
    }

    /// Moves the pages of `[from, from + bytes)` to `to`, where nothing is mapped.
    /// Returns false if memory is short; pages that did not move are still at `from`.
    pub fn relocate(&self, from: VirtAddr, to: VirtAddr, bytes: u64, gather: &mut Gather) -> bool {
        let mut tree = self.tree.lock();
        (0..bytes).step_by(PAGE_BYTES).all(|offset| {
            let Some(old) = tree.find(from + offset, 0).map(|slot| slot.load(Relaxed)) else {
                return true;
            };
            if old == 0 {
                return true;
            }
            let target = to + offset;
            if !is_user_page(target) || tree.leaf_table(target).is_none() {
                return false;
            }
            let taken = tree
                .find(from + offset, 0)
                .map_or(0, |slot| slot.swap(0, Relaxed));
            gather.note(from + offset);
            if let Some(slot) = tree.find(target, 0) {
                slot.store(taken, Relaxed);
            }
            true
        })
    }
}

impl Drop for PageTable {
    fn drop(&mut self) {
        self.clear([VirtAddr(0)..USER_END].into_iter());
        // SAFETY: `clear` took the root off all CPUs; nobody has the table any more.
        unsafe { self.tree.get_mut().free() };
    }
}

fn is_user_page(at: VirtAddr) -> bool {
    at < USER_END && at.page_offset() == 0
}

pub(super) fn clip(to: VirtAddr) -> VirtAddr {
    to.min(USER_END)
}

/// Replaces the permissions of an entry, keeping its page and the processor's marks.
pub(super) fn set_bits(slot: &AtomicU64, old: u64, bits: u64) {
    let mut seen = old;
    loop {
        let marks = seen & (ACCESSED | DIRTY | CACHING | ZEROS);
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
    }
}

/// Looks at the page of an entry without taking its claim.
pub(super) fn look_at<R>(entry: u64, look: impl FnOnce(u64, &Page) -> R) -> Option<R> {
    (entry & (PRESENT | HELD) != 0).then(|| {
        let page = core::mem::ManuallyDrop::new(Page::from_frame(entry::frame(entry)));
        look(entry, &page)
    })
}
