//! Page tables that map nothing any more.
//!
//! The problem: a program that maps here and there, and unmaps again, leaves a table behind for
//! each 2 MiB that it ever touched. To look for empty entries after each unmapping would cost
//! more than most unmappings do.
//!
//! The idea: nobody looks. The caller knows a *hole*, addresses that nothing is to be mapped
//! at; a table whose whole span lies in a hole is empty. Only tables that map a part of what was
//! just unmapped can have come to lie in one, so the cost follows that. A table that reaches
//! out of the hole stays, whatever it holds.
//!
//! A table is unlinked first. Before it is given back, all CPUs must forget it, resting ones too
//! (`shootdown`), which costs interrupts that unmapping pages does not. So a few last-level tables are
//! kept as spares and linked again before new ones are made. A CPU that rests may still remember
//! one at its old place; but all that it can do there is to mark entries as accessed and to learn
//! translations that it forgets when it wakes. A table of a higher level is never kept: as a last-level
//! one it would lead such a CPU through a program's pages as if they were tables.
//!
//! Invariant **Listed**: the note of a table's frame (`frames`) is its index in [`Tree`]'s list, so that
//! it is found there at once.

use core::ops::Range;
use core::sync::atomic::Ordering::Relaxed;

use base::VirtAddr;
use frames::FrameNo;

use super::entry::{self, LARGE, PRESENT};
use super::table::clip;
use super::walk::{ROOT_LEVEL, Tree, index, span, table_at};
use super::{Gather, PageTable, ram};

impl PageTable {
    /// Gives back the tables that map a part of `range` and nothing outside of `hole`, in which
    /// nothing is mapped.
    pub fn sweep(&self, range: Range<VirtAddr>, hole: Range<VirtAddr>, gather: &mut Gather) {
        let range = range.start.0..clip(range.end).0;
        let hole = hole.start.0..clip(hole.end).0;
        if has_span(&range, &hole) {
            let mut tree = self.tree.lock();
            let root = tree.root;
            tree.sweep_below(root, ROOT_LEVEL, range, &hole, gather);
            tree.trim_spares(gather);
            // Spares are linked again once the lock is let go.
            gather.flush();
        }
    }

    /// Tables below the root.
    pub fn tables(&self) -> usize {
        self.tree.lock().tables.len()
    }
}

/// Whether a part of `range` belongs to a table all of whose span lies in `hole`.
fn has_span(range: &Range<u64>, hole: &Range<u64>) -> bool {
    let first = range.start & !(span(1) - 1);
    let start = first.max(hole.start.next_multiple_of(span(1)));
    start < range.end && start + span(1) <= hole.end
}

impl Tree {
    /// Sweeps what the entries of a table for `range` link to.
    fn sweep_below(
        &mut self,
        table: FrameNo,
        level: u32,
        range: Range<u64>,
        hole: &Range<u64>,
        gather: &mut Gather,
    ) {
        let mut at = range.start;
        while at < range.end {
            let start = at & !(span(level) - 1);
            let end = start + span(level);
            // SAFETY: **Tables**: `table` is the root or was linked by a table.
            let slot = unsafe { &table_at(table)[index(VirtAddr(at), level)] };
            let link = slot.load(Relaxed);
            if link & (PRESENT | LARGE) == PRESENT {
                let below = entry::frame(link);
                if hole.start <= start && end <= hole.end {
                    slot.store(0, Relaxed);
                    self.give_up(below, level - 1, VirtAddr(at), gather);
                } else if level > 1 {
                    self.sweep_below(below, level - 1, at..end.min(range.end), hole, gather);
                }
            }
            at = end;
        }
    }

    /// Gives up a table of `level` that is linked no more, and what it links to. `at` is an address
    /// that it mapped.
    fn give_up(&mut self, table: FrameNo, level: u32, at: VirtAddr, gather: &mut Gather) {
        gather.note_table(at);
        // SAFETY: **Tables**: nobody has given it back yet.
        let slots = unsafe { table_at(table) };
        for link in slots.iter().map(|slot| slot.load(Relaxed)) {
            let is_table = level > 0 && link & LARGE == 0;
            debug_assert!(is_table || link == 0, "the hole is empty");
            if is_table && link & PRESENT != 0 {
                self.give_up(entry::frame(link), level - 1, at, gather);
            }
        }
        if level > 0 || !self.large.keep_spare(table) {
            self.unlist(table);
            gather.push_table(table);
        }
    }

    /// Lists a new table.
    pub(super) fn list(&mut self, table: FrameNo) {
        ram::table().set_note(table, self.tables.len() as u64);
        self.tables.push(table);
    }

    /// Takes a table that is to be given back off the list.
    pub(super) fn unlist(&mut self, table: FrameNo) {
        let Some(at) = ram::table().note(table).map(|at| at as usize) else {
            return;
        };
        debug_assert_eq!(self.tables.get(at), Some(&table), "**Listed**");
        self.tables.swap_remove(at);
        if let Some(&moved) = self.tables.get(at) {
            ram::table().set_note(moved, at as u64);
        }
    }
}
