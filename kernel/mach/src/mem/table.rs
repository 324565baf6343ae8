//! A program's page table.

use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use base::{PAGE_BYTES, VirtAddr};

use super::entry::{self, ACCESSED, DIRTY, HELD, Mapping, PRESENT, Prot, USER, WRITE};
use super::user::USER_END;
use super::walk::{self, Tree};
use super::{Gather, Page, kernel_map, ram, tlb};
use crate::sync::Spin;

/// Why a page was not mapped; it comes back.
#[derive(Debug)]
pub enum MapError {
    /// Memory for a table is short.
    NoMemory(Page),
    /// A page is mapped there already.
    Occupied(Page),
    /// The address is not a page of the user half.
    OutOfRange(Page),
}

/// The pages of one address space, as the processor sees them.
///
/// Ranges are clipped to the user half. All methods may be called by any CPU at any
/// time; what a range means while two callers change it is for them to agree on.
#[derive(Debug)]
pub struct PageTable {
    tree: Spin<Tree>,
    pub(super) id: tlb::SpaceId,
    resident: AtomicUsize,
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

    /// Maps `page` at an empty place. No other CPU needs to be told.
    pub fn map(&self, at: VirtAddr, page: Page, prot: Prot) -> Result<(), MapError> {
        if !is_user_page(at) {
            return Err(MapError::OutOfRange(page));
        }
        let mut tree = self.tree.lock();
        let Some(slot) = tree.find_or_make(at, 0, USER | WRITE) else {
            return Err(MapError::NoMemory(page));
        };
        if slot.load(Relaxed) != 0 {
            return Err(MapError::Occupied(page));
        }
        slot.store(entry::link(page.into_frame(), prot.bits()), Relaxed);
        self.resident.fetch_add(1, Relaxed);
        Ok(())
    }

    /// Puts `page` in place of the page at `at`, which goes to `gather`.
    pub fn replace(
        &self,
        at: VirtAddr,
        page: Page,
        prot: Prot,
        gather: &mut Gather,
    ) -> Result<(), MapError> {
        let old = self.take(at);
        if let Some(old) = old {
            gather.push(at, old);
            // Before anybody can see the new page: two CPUs must not see different ones.
            gather.flush();
        }
        self.map(at, page, prot)
    }

    fn take(&self, at: VirtAddr) -> Option<Page> {
        let tree = self.tree.lock();
        let old = tree.find(at, 0)?.swap(0, Relaxed);
        let owned = entry::owns_page(old);
        self.resident.fetch_sub(usize::from(owned), Relaxed);
        owned.then(|| Page::from_frame(entry::frame(old)))
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
            let cow = keep_shared && is_shared(old);
            let prot = if cow { prot.without_write() } else { prot };
            set_bits(slot, old, prot.bits());
            if loses_rights(old, prot.bits()) {
                gather.note(at);
            }
        });
    }

    /// Gives the page at `at` these permissions if it is mapped; only this CPU is told
    /// (others fault once more at most, so use it to add rights). Returns whether a page
    /// is there.
    pub fn grant(&self, at: VirtAddr, prot: Prot) -> bool {
        let tree = self.tree.lock();
        let Some(slot) = tree.find(at, 0) else {
            return false;
        };
        let old = slot.load(Relaxed);
        if !entry::owns_page(old) {
            return false;
        }
        set_bits(slot, old, prot.bits());
        arch::instr::invlpg(at.0);
        true
    }

    /// The page at `at`, shared with the caller.
    pub fn page(&self, at: VirtAddr) -> Option<Page> {
        self.with_leaf(at, |_, page| page.clone())
    }

    /// What is mapped at `at`.
    pub fn query(&self, at: VirtAddr) -> Option<Mapping> {
        self.with_leaf(at, describe)
    }

    fn with_leaf<R>(&self, at: VirtAddr, look: impl FnOnce(u64, &Page) -> R) -> Option<R> {
        let tree = self.tree.lock();
        look_at(tree.find(at, 0)?.load(Relaxed), look)
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

    /// Maps the range's pages in `child`, too. With `copy_on_write` both lose
    /// the right to store. Returns false if memory is short; the child then has a part.
    pub fn share_with(
        &self,
        child: &PageTable,
        from: VirtAddr,
        to: VirtAddr,
        copy_on_write: bool,
        gather: &mut Gather,
    ) -> bool {
        let tree = self.tree.lock();
        let mut below = child.tree.lock();
        let (mut complete, mut shared) = (true, 0);
        tree.for_each_leaf_table(from, clip(to), &mut |start, slots| {
            let Some(targets) = below.leaf_slots(start, USER | WRITE) else {
                complete = false;
                return;
            };
            for (index, (slot, target)) in slots.iter().zip(targets).enumerate() {
                let entry = slot.load(Relaxed);
                if !entry::owns_page(entry) {
                    continue;
                }
                if copy_on_write && entry & WRITE != 0 {
                    slot.fetch_and(!WRITE, Relaxed);
                    gather.note(start + (index * PAGE_BYTES) as u64);
                }
                let adopted = adopt(target, entry, copy_on_write);
                complete &= adopted;
                shared += usize::from(adopted);
            }
        });
        child.resident.fetch_add(shared, Relaxed);
        complete
    }

    /// Moves the pages of `[from, from + bytes)` to `to`, where nothing is mapped.
    /// Returns false if memory is short; pages that did not move are still at `from`.
    pub fn relocate(&self, from: VirtAddr, to: VirtAddr, bytes: u64, gather: &mut Gather) -> bool {
        let mut tree = self.tree.lock();
        (0..bytes).step_by(PAGE_BYTES).all(|offset| {
            let Some(old) = tree.find(from + offset, 0).map(|slot| slot.load(Relaxed)) else {
                return true;
            };
            if !entry::owns_page(old) {
                return true;
            }
            let target = to + offset;
            if !is_user_page(target) || tree.find_or_make(target, 0, USER | WRITE).is_none() {
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
        tlb::evict(&self.id);
        let mut tree = self.tree.lock();
        tree.for_each(VirtAddr(0), USER_END, &mut |_, slot| {
            let entry = slot.load(Relaxed);
            if entry::owns_page(entry) {
                drop(Page::from_frame(entry::frame(entry)));
            }
        });
        // SAFETY: `evict` took the root off all CPUs; nobody has the table any more.
        unsafe { tree.free() };
    }
}

fn is_user_page(at: VirtAddr) -> bool {
    at < USER_END && at.page_offset() == 0
}

fn clip(to: VirtAddr) -> VirtAddr {
    to.min(USER_END)
}

/// Makes `target`, which is empty, an owner of the page that `entry` links to.
fn adopt(target: &AtomicU64, entry: u64, copy_on_write: bool) -> bool {
    if target.load(Relaxed) != 0 || ram::table().share(entry::frame(entry)).is_err() {
        return false;
    }
    let dropped = if copy_on_write {
        WRITE | DIRTY | ACCESSED
    } else {
        DIRTY | ACCESSED
    };
    target.store(entry & !dropped, Relaxed);
    true
}

/// Replaces the permissions of an entry, keeping its page and the processor's marks.
fn set_bits(slot: &AtomicU64, old: u64, bits: u64) {
    let mut seen = old;
    loop {
        let marks = seen & (ACCESSED | DIRTY);
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

fn describe(entry: u64, page: &Page) -> Mapping {
    Mapping {
        present: entry & (PRESENT | HELD) == PRESENT,
        writable: entry & WRITE != 0,
        dirty: entry & DIRTY != 0,
        accessed: entry & ACCESSED != 0,
        shared: page.owners() > 1,
    }
}

/// Looks at the page of an entry without taking its claim.
fn look_at<R>(entry: u64, look: impl FnOnce(u64, &Page) -> R) -> Option<R> {
    entry::owns_page(entry).then(|| {
        let page = core::mem::ManuallyDrop::new(Page::from_frame(entry::frame(entry)));
        look(entry, &page)
    })
}
