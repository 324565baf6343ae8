//! Moving pages to other addresses of the same table (mremap).
//!
//! The problem: the target needs tables of its own, for which memory may run out, and pages
//! that have come half the way are of use to nobody.
//!
//! The idea: first all tables are made ([`PageTable::prepare_relocation`]). That may fail, and
//! then no page has moved. The move itself ([`PageTable::relocate`]) takes no memory.
//!
//! Not here: keeping faults and other changes away from both ranges between the two (the
//! caller's).

use core::sync::atomic::Ordering::Relaxed;

use base::{PAGE_BYTES, VirtAddr};

use super::table::clip;
use super::user::USER_END;
use super::walk::Tree;
use super::{Gather, PageTable};

const PAGE: u64 = PAGE_BYTES as u64;

impl PageTable {
    /// Makes the tables that moving the pages of `[from, from + bytes)` to `to` takes. False if
    /// memory is short.
    pub fn prepare_relocation(&self, from: VirtAddr, to: VirtAddr, bytes: u64) -> bool {
        if !is_user_range(to, bytes) {
            return false;
        }
        let mut tree = self.tree.lock();
        let end = clip(from + bytes);
        self.split_range(&mut tree, from..end);
        let mut at = from;
        while let Some(part) = tree.first_small(at..end) {
            // A table's pages lie in two tables at most where they go.
            let (first, last) = (part.start - from, part.end - from - PAGE);
            let is_made = |offset| tree.leaf_table(to + offset).is_ok();
            if ![first, last].into_iter().all(is_made) {
                return false;
            }
            at = part.end;
        }
        true
    }

    /// Moves the pages of `[from, from + bytes)` to `to`, where nothing is mapped, into tables
    /// that [`PageTable::prepare_relocation`] made.
    pub fn relocate(&self, from: VirtAddr, to: VirtAddr, bytes: u64, gather: &mut Gather) {
        assert!(is_user_range(to, bytes), "pages stay in the user half");
        let tree = self.tree.lock();
        let end = clip(from + bytes);
        let mut at = from;
        while let Some(part) = tree.first_small(at..end) {
            for offset in (part.start - from..part.end - from).step_by(PAGE_BYTES) {
                if move_entry(&tree, from + offset, to + offset) {
                    gather.note(from + offset);
                }
            }
            at = part.end;
        }
    }
}

/// Moves one entry, if there is one.
fn move_entry(tree: &Tree, from: VirtAddr, to: VirtAddr) -> bool {
    let old = tree.find(from, 0).filter(|slot| slot.load(Relaxed) != 0);
    let Some(old) = old else { return false };
    let Some(new) = tree.find(to, 0) else {
        unreachable!("the tables were made before");
    };
    new.store(old.swap(0, Relaxed), Relaxed);
    true
}

fn is_user_range(start: VirtAddr, bytes: u64) -> bool {
    let end = start.checked_add(bytes);
    start.page_offset() == 0 && end.is_some_and(|end| end <= USER_END)
}
