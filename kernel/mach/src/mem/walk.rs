//! The four levels of tables below a root, and finding one's way through them.

use alloc::vec::Vec;
use core::ops::{ControlFlow, Range};
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use base::{PAGE_BYTES, VirtAddr};
use frames::{Frame, FrameNo};

use super::entry::{self, LARGE, PRESENT, USER, WRITE};
use super::large::Large;
use super::{direct, ram};

/// Entries of a table.
pub(super) const ENTRIES: usize = 512;
/// Levels between the root (3) and the tables that map 4 KiB pages (0).
pub(super) const ROOT_LEVEL: u32 = 3;

pub(super) type Table = [AtomicU64; ENTRIES];

/// The table in `frame`.
///
/// # Safety
/// **Tables** holds for `frame` as long as the reference is used.
#[inline(always)]
pub(super) unsafe fn table_at<'a>(frame: FrameNo) -> &'a Table {
    // SAFETY: **Direct** maps it, the caller vouches for the rest; entries are atomic.
    unsafe { &*direct::frame_pointer(frame).cast::<Table>() }
}

/// A new table with no entries.
pub(super) fn new_table() -> Option<FrameNo> {
    Some(ram::alloc_user_frame_zeroed()?.into_number())
}

/// Tables that are given back at a time.
const TABLES_AT_ONCE: usize = 1024;

/// Bytes that one entry of a table at `level` covers.
pub(super) const fn span(level: u32) -> u64 {
    1 << (12 + 9 * level)
}

#[inline(always)]
pub(super) fn index(at: VirtAddr, level: u32) -> usize {
    (at.0 >> (12 + 9 * level)) as usize % ENTRIES
}

/// The tables below one root. Whoever has it has the right to change them.
#[derive(Debug)]
pub(super) struct Tree {
    pub(super) root: FrameNo,
    /// The tables of the program's half, so that nobody has to look for them at the end
    /// (`sweep`).
    pub(super) tables: Vec<FrameNo>,
    pub(super) large: Large,
}

/// Why there is no last-level table for an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoLeaf {
    /// Memory for tables is short.
    NoMemory,
    /// A large page is mapped there.
    Large,
}

/// Entries for a part of a range.
pub(super) enum Part<'a> {
    /// A last-level table's, and the address of the first.
    Small(VirtAddr, &'a [AtomicU64]),
    /// A large page's, and what it maps of the range.
    Large(Range<VirtAddr>, &'a AtomicU64),
}

/// What an entry maps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Size {
    /// 4 KiB.
    Small,
    /// 2 MiB.
    Large,
}

impl Tree {
    /// # Safety
    /// `root` and all tables linked from it satisfy **Tables** for this tree.
    pub unsafe fn new(root: FrameNo) -> Self {
        Self {
            root,
            tables: Vec::new(),
            large: Large::default(),
        }
    }

    /// The entry for the table or page of `level` at `at`; `None` if a table on the way
    /// is missing or a large page is mapped there.
    #[inline]
    pub fn find(&self, at: VirtAddr, level: u32) -> Option<&AtomicU64> {
        let mut frame = self.root;
        for above in (level + 1..=ROOT_LEVEL).rev() {
            // SAFETY: **Tables**: `frame` is the root or was linked by a table.
            let link = unsafe { table_at(frame) }[index(at, above)].load(Relaxed);
            if link & (PRESENT | LARGE) != PRESENT {
                return None;
            }
            frame = entry::frame(link);
        }
        // SAFETY: as above.
        Some(&unsafe { table_at(frame) }[index(at, level)])
    }

    /// As [`Tree::find`], making the tables on the way with the permissions `bits`.
    #[inline]
    pub fn find_or_make(&mut self, at: VirtAddr, level: u32, bits: u64) -> Option<&AtomicU64> {
        if self.find(at, level).is_none() {
            self.make(at, level, bits)?;
        }
        self.find(at, level)
    }

    #[cold]
    fn make(&mut self, at: VirtAddr, level: u32, bits: u64) -> Option<()> {
        for above in (level + 1..=ROOT_LEVEL).rev() {
            let slot = self.find(at, above)?;
            if slot.load(Relaxed) == 0 {
                slot.store(entry::link(new_table()?, PRESENT | bits), Relaxed);
            }
        }
        Some(())
    }

    /// Calls `act` with every entry that is not empty for pages in `[from, to)`, and what it
    /// maps of the range.
    pub fn for_each(
        &self,
        from: VirtAddr,
        to: VirtAddr,
        act: &mut impl FnMut(Size, Range<VirtAddr>, &AtomicU64),
    ) {
        self.for_each_part(from, to, &mut |part| match part {
            Part::Small(start, slots) => {
                for (index, slot) in slots.iter().enumerate() {
                    if slot.load(Relaxed) != 0 {
                        let at = start + (index * PAGE_BYTES) as u64;
                        act(Size::Small, at..at + PAGE_BYTES as u64, slot);
                    }
                }
            }
            Part::Large(range, slot) => act(Size::Large, range, slot),
        });
    }

    /// Calls `act` with all entries for pages in `[from, to)`, empty ones too.
    pub fn for_each_part(&self, from: VirtAddr, to: VirtAddr, act: &mut impl FnMut(Part<'_>)) {
        let mut act = |part: Part<'_>| {
            act(part);
            ControlFlow::Continue(())
        };
        // It ends by itself.
        let _ = self.try_for_each_part(from, to, &mut act);
    }

    /// The same, until `act` breaks.
    pub fn try_for_each_part(
        &self,
        from: VirtAddr,
        to: VirtAddr,
        act: &mut impl FnMut(Part<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        if from >= to {
            return ControlFlow::Continue(());
        }
        self.visit(self.root, ROOT_LEVEL, from.0..to.0, act)
    }

    fn visit(
        &self,
        table: FrameNo,
        level: u32,
        range: Range<u64>,
        act: &mut impl FnMut(Part<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        // SAFETY: **Tables**: `table` is the root or was linked by a table.
        let table = unsafe { table_at(table) };
        let first = index(VirtAddr(range.start), level);
        let count = (range.end - (range.start & !(span(level) - 1))).div_ceil(span(level));
        if level == 0 {
            let slots = &table[first..first + count as usize];
            return act(Part::Small(VirtAddr(range.start), slots));
        }
        let mut at = range.start;
        for slot in &table[first..first + count as usize] {
            let next = ((at & !(span(level) - 1)) + span(level)).min(range.end);
            let link = slot.load(Relaxed);
            if link & (PRESENT | LARGE) == PRESENT | LARGE {
                act(Part::Large(VirtAddr(at)..VirtAddr(next), slot))?;
            } else if link & PRESENT != 0 {
                self.visit(entry::frame(link), level - 1, at..next, act)?;
            }
            at = next;
        }
        ControlFlow::Continue(())
    }

    /// The last-level table for `at` in a program's half, made if need be.
    #[inline]
    pub fn leaf_table(&mut self, at: VirtAddr) -> Result<&Table, NoLeaf> {
        self.table_of(at, 0)
    }

    /// The table of `level` for `at` in a program's half, made if need be.
    #[inline(always)]
    pub(super) fn table_of(&mut self, at: VirtAddr, level: u32) -> Result<&Table, NoLeaf> {
        let mut frame = self.root;
        for above in (level + 1..ROOT_LEVEL + 1).rev() {
            // SAFETY: **Tables**: `frame` is the root or was linked by a table.
            let slot = unsafe { &table_at(frame)[index(at, above)] };
            let link = slot.load(Relaxed);
            frame = if link & PRESENT == 0 {
                self.link_new(slot).ok_or(NoLeaf::NoMemory)?
            } else if above == 1 && link & LARGE != 0 {
                return Err(NoLeaf::Large);
            } else {
                entry::frame(link)
            };
        }
        // SAFETY: as above.
        Ok(unsafe { table_at(frame) })
    }

    /// Links a new table of a program's half to `slot`.
    #[cold]
    fn link_new(&mut self, slot: &AtomicU64) -> Option<FrameNo> {
        let frame = self.add_table()?;
        slot.store(entry::link(frame, PRESENT | WRITE | USER), Relaxed);
        Some(frame)
    }

    /// A table of a program's half, not linked yet.
    pub(super) fn add_table(&mut self) -> Option<FrameNo> {
        if let Some(spare) = self.large.take_surplus() {
            return Some(spare);
        }
        self.tables.try_reserve(1).ok()?;
        let frame = new_table()?;
        self.list(frame);
        Some(frame)
    }

    /// The entries from `at` to the end of its last-level table, which is made if need be.
    #[inline(never)] // The loops over many entries, for which it is called, want the registers.
    pub fn leaf_slots(&mut self, at: VirtAddr) -> Result<&[AtomicU64], NoLeaf> {
        Ok(&self.leaf_table(at)?[index(at, 0)..])
    }

    /// The addresses in `range` that its first last-level table maps.
    pub fn first_small(&self, range: Range<VirtAddr>) -> Option<Range<VirtAddr>> {
        let mut found = None;
        let _ = self.try_for_each_part(range.start, range.end, &mut |part| match part {
            Part::Small(start, slots) => {
                found = Some(start..start + (slots.len() * PAGE_BYTES) as u64);
                ControlFlow::Break(())
            }
            Part::Large(..) => ControlFlow::Continue(()),
        });
        found
    }

    /// Takes all tables out of the root, which maps nothing then. Leaves are the caller's, and
    /// no CPU uses the root.
    pub fn unlink_all(&mut self) {
        // SAFETY: **Tables**: the root is this tree's.
        let root = unsafe { table_at(self.root) };
        for slot in &root[..ENTRIES / 2] {
            slot.store(0, Relaxed);
        }
    }

    /// Gives back some tables after [`Tree::unlink_all`]; false if there is none.
    pub fn free_some(&mut self) -> bool {
        let rest = self.tables.len().saturating_sub(TABLES_AT_ONCE);
        for table in self.tables.drain(rest..) {
            ram::free_frame(Frame::from_number(table));
        }
        rest != 0
    }

    /// Gives back all tables of the program's half and the root. Leaves are the caller's.
    ///
    /// # Safety
    /// No CPU uses the root, and the tree is not used again.
    pub unsafe fn free(&mut self) {
        for table in self.tables.drain(..) {
            ram::free_frame(Frame::from_number(table));
        }
        ram::free_frame(Frame::from_number(self.root));
    }
}
