//! Pages of 2 MiB, mapped by one entry above the last level.
//!
//! The problem: large pages save faults, tables and misses in the TLB, but programs unmap,
//! protect and fork at 4 KiB, at any time, and such a call must not fail for want of memory.
//!
//! The idea: each of the 512 frames counts its owners for itself, as if it were mapped
//! alone, and a table lies ready for every large page that is mapped. So one can
//! fall apart into small ones at any moment, and nothing outside of this module and the
//! walks needs to know that it ever was one. Nobody shares large pages: a fork takes
//! them apart first, so that copies are made of 4 KiB.
//!
//! Invariants: a large entry is present and owns one count of each of its frames (**Leaf**);
//! `spares` holds at least as many empty tables as large entries exist. What it holds besides was
//! swept (`sweep`), and is used wherever a table is needed.

use alloc::vec::Vec;
use core::ops::{ControlFlow, Range};
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use base::{PAGE_BYTES, PAGE_SHIFT, VirtAddr};
use frames::{Extent, FrameNo};

use super::entry::{self, LARGE, PRESENT, Prot, USER, WRITE};
use super::table::clip;
use super::walk::{self, ENTRIES, Part, Tree, index, table_at};
use super::{Page, PageTable, direct, ram, tlb};

/// Bytes of a large page.
pub const LARGE_PAGE_BYTES: u64 = 2 << 20;
const FRAMES: u64 = LARGE_PAGE_BYTES >> PAGE_SHIFT;

/// Large pages mapped by all tables. A figure of the machine, for /proc/meminfo.
static MAPPED: AtomicUsize = AtomicUsize::new(0);

/// Large pages that programs have mapped now.
pub fn large_pages() -> usize {
    MAPPED.load(Relaxed)
}

/// 512 frames in a row that nobody else owns.
#[derive(Debug)]
pub struct LargePage {
    first: FrameNo,
}

impl LargePage {
    /// One full of zeros; `None` if there is no such row of frames.
    pub fn zeroed() -> Option<Self> {
        let (first, _) = ram::alloc_user_extent(FRAMES)?.into_parts();
        // SAFETY: **Claim**: the frames are ours alone, **Direct** maps them in a row.
        unsafe { direct::frame_pointer(first).write_bytes(0, LARGE_PAGE_BYTES as usize) };
        Some(Self { first })
    }
}

impl Drop for LargePage {
    fn drop(&mut self) {
        give_back(self.first);
    }
}

/// Gives up one count of each frame of a large page, at once if nobody else has one.
fn give_back(first: FrameNo) {
    let frames = first..first + FRAMES;
    if frames.clone().all(|frame| ram::table().owners(frame) == 1) {
        ram::free_extent(Extent::from_parts(first, FRAMES));
    } else {
        frames.for_each(|frame| drop(Page::from_frame(frame)));
    }
}

/// A tree's large pages.
#[derive(Debug, Default)]
pub(super) struct Large {
    pub(super) mapped: usize,
    /// Empty tables that are linked nowhere (`spares`).
    pub(super) spares: Vec<FrameNo>,
}

impl Large {
    pub fn is_none(&self) -> bool {
        self.mapped == 0
    }

    fn note_gone(&mut self) {
        self.mapped -= 1;
        MAPPED.fetch_sub(1, Relaxed);
    }
}

impl Tree {
    /// The entry of the large page that maps `at`.
    fn large_slot(&self, at: VirtAddr) -> Option<&AtomicU64> {
        let slot = self.find(at, 1)?;
        let both = PRESENT | LARGE;
        (slot.load(Relaxed) & both == both).then_some(slot)
    }

    /// The first address of the range that a large page maps. The cost follows the tables that
    /// exist, not the length of the range.
    fn first_large(&self, range: Range<VirtAddr>) -> Option<VirtAddr> {
        let mut found = None;
        let _ = self.try_for_each_part(range.start, clip(range.end), &mut |part| match part {
            Part::Small(..) => ControlFlow::Continue(()),
            Part::Large(range, _) => {
                found = Some(range.start);
                ControlFlow::Break(())
            }
        });
        found
    }

    /// The entry for `at` as a last-level table would have it.
    pub(super) fn small_entry(&self, at: VirtAddr) -> Option<u64> {
        match self.large_slot(at) {
            Some(slot) => Some(small(slot.load(Relaxed), index(at, 0))),
            None => Some(self.find(at, 0)?.load(Relaxed)),
        }
    }

    /// Counts large entries that are gone.
    pub(super) fn forget_large(&mut self, count: usize) {
        (0..count).for_each(|_| self.large.note_gone());
    }
}

/// The entry of small page number `number` in a large page.
pub(super) fn small(entry: u64, number: usize) -> u64 {
    (entry & !LARGE) + ((number as u64) << PAGE_SHIFT)
}

/// Gives back what a large page's entry owned, which no CPU translates by any more.
pub(super) fn release(entry: u64) {
    give_back(entry::frame(entry));
}

fn is_empty(table: &walk::Table) -> bool {
    table.iter().all(|slot| slot.load(Relaxed) == 0)
}

impl PageTable {
    /// Whether a large page could be mapped around `at`: nothing is there yet.
    pub fn has_room_for_large(&self, at: VirtAddr) -> bool {
        let tree = self.tree.lock();
        match tree.find(at, 1).map(|slot| slot.load(Relaxed)) {
            None | Some(0) => true,
            Some(link) if link & LARGE != 0 => false,
            // SAFETY: **Tables**: linked, and the lock is held.
            Some(link) => is_empty(unsafe { table_at(entry::frame(link)) }),
        }
    }

    /// Maps `page` at `at`, a multiple of its size, if nothing is there. Else, or when
    /// memory for tables is short, the page comes back.
    pub fn map_large(&self, at: VirtAddr, page: LargePage, prot: Prot) -> Result<(), LargePage> {
        let mut tree = self.tree.lock();
        // The spare comes last: a table on the way may take it.
        let is_ready = at.0.is_multiple_of(LARGE_PAGE_BYTES)
            && tree.table_of(at, 1).is_ok()
            && tree.add_spare().is_some();
        let Some(slot) = tree.find(at, 1).filter(|_| is_ready) else {
            return Err(page);
        };
        let link = slot.load(Relaxed);
        if link != 0 {
            // SAFETY: **Tables**: linked, and the lock is held.
            if link & LARGE != 0 || !is_empty(unsafe { table_at(entry::frame(link)) }) {
                return Err(page);
            }
            slot.store(0, Relaxed);
            // The table is a spare now: no CPU may still walk through it.
            tlb::flush(&self.id, at.0..at.0 + PAGE_BYTES as u64, 1);
        }
        slot.store(entry::link(page.first, prot.bits() | LARGE), Relaxed);
        core::mem::forget(page);
        if link != 0 {
            tree.large.spares.push(entry::frame(link));
        }
        tree.large.mapped += 1;
        MAPPED.fetch_add(1, Relaxed);
        self.resident.fetch_add(ENTRIES, Relaxed);
        Ok(())
    }

    /// Takes the large pages apart that lie in the range, wholly or not.
    pub(super) fn split_range(&self, tree: &mut Tree, range: Range<VirtAddr>) {
        if tree.large.is_none() {
            return;
        }
        let mut at = range.start;
        while !tree.large.is_none()
            && let Some(large) = tree.first_large(at..range.end)
        {
            self.split(tree, large);
            at = VirtAddr((large.0 & !(LARGE_PAGE_BYTES - 1)) + LARGE_PAGE_BYTES);
        }
    }

    /// Takes the large pages apart that lie across an end of the range.
    pub(super) fn split_ends(&self, tree: &mut Tree, range: &Range<VirtAddr>) {
        if tree.large.is_none() {
            return;
        }
        for at in [range.start, range.end] {
            if !at.0.is_multiple_of(LARGE_PAGE_BYTES) {
                self.split(tree, at);
            }
        }
    }

    /// Takes the large page at `at` apart, if there is one.
    fn split(&self, tree: &mut Tree, at: VirtAddr) {
        if tree.large_slot(at).is_none() {
            return;
        }
        let Some(spare) = tree.large.spares.pop() else {
            unreachable!("a spare table lies ready for each large page");
        };
        tree.large.note_gone();
        let Some(slot) = tree.find(at, 1) else { return };
        // No CPU may have translations of both sizes.
        let old = slot.swap(0, Relaxed);
        tlb::flush(
            &self.id,
            at.page_floor().0..at.page_floor().0 + PAGE_BYTES as u64,
            1,
        );
        // SAFETY: **Tables**: the spare is a table of this tree, linked nowhere.
        let table = unsafe { table_at(spare) };
        for (number, small_slot) in table.iter().enumerate() {
            small_slot.store(small(old, number), Relaxed);
        }
        slot.store(entry::link(spare, PRESENT | WRITE | USER), Relaxed);
    }
}
