//! A child's table: the same pages, which neither may store to any more.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use base::{PAGE_BYTES, VirtAddr};

use super::entry::{self, ACCESSED, DIRTY, WRITE};
use super::table::clip;
use super::walk::Part;
use super::{Gather, PageTable, page};

impl PageTable {
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
        let mut tree = self.tree.lock();
        self.split_range(&mut tree, from..to);
        let mut below = child.tree.lock();
        let (mut complete, mut shared) = (true, 0);
        tree.for_each_part(from, clip(to), &mut |part| {
            let Part::Small(start, slots) = part else {
                return;
            };
            let Ok(targets) = below.leaf_slots(start) else {
                complete = false;
                return;
            };
            for (index, (slot, target)) in slots.iter().zip(targets).enumerate() {
                let entry = slot.load(Relaxed);
                if entry == 0 {
                    continue;
                }
                if copy_on_write && entry & WRITE != 0 {
                    slot.fetch_and(!WRITE, Relaxed);
                    gather.note(start + (index * PAGE_BYTES) as u64);
                }
                match adopt(target, entry, copy_on_write) {
                    Some(owned) => shared += owned,
                    None => complete = false,
                }
            }
        });
        child.resident.fetch_add(shared, Relaxed);
        complete
    }
}

/// Makes `target`, which is empty, show what `entry` shows; how many pages it owns now.
/// `None` if the page has too many owners.
#[inline(always)]
fn adopt(target: &AtomicU64, entry: u64, copy_on_write: bool) -> Option<usize> {
    let owned = entry::owns_page(entry);
    if owned && !page::share(entry::frame(entry)) {
        return None;
    }
    let dropped = if copy_on_write {
        WRITE | DIRTY | ACCESSED
    } else {
        DIRTY | ACCESSED
    };
    target.store(entry & !dropped, Relaxed);
    Some(usize::from(owned))
}
