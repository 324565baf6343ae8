//! All areas of an address space.

use alloc::vec::Vec;
use core::cell::Cell;
use core::ops::Range;

use base::VirtAddr;

use crate::Area;
use crate::arena::{NoMemory, Slot};
use crate::tree::Tree;

/// Areas that one address space may have, as in Linux (`vm.max_map_count`).
pub const AREAS_MAX: usize = 65_530;

/// The change would make more than [`AREAS_MAX`] areas, or memory for one more is short;
/// nothing was changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TooManyAreas;

impl From<NoMemory> for TooManyAreas {
    fn from(_: NoMemory) -> Self {
        Self
    }
}

/// What a removal took out.
#[derive(Debug)]
#[must_use = "dropping objects may be expensive: choose where"]
pub struct Removed<O> {
    /// Bytes that were mapped.
    pub bytes: u64,
    /// The objects of the areas, where the areas had one.
    pub objects: Vec<O>,
}

impl<O> Default for Removed<O> {
    fn default() -> Self {
        Self {
            bytes: 0,
            objects: Vec::new(),
        }
    }
}

/// Disjoint areas by address; see the crate's theory.
#[derive(Clone, Debug)]
pub struct AreaMap<O> {
    tree: Tree<O>,
    bytes: u64,
    promised: u64,
    /// The area found last: the next fault is most likely in it, too.
    recent: Cell<Slot>,
}

impl<O: Clone + PartialEq> AreaMap<O> {
    /// No areas.
    pub const fn new() -> Self {
        Self {
            tree: Tree::new(),
            bytes: 0,
            promised: 0,
            recent: Cell::new(Slot::NONE),
        }
    }

    /// Number of areas.
    pub fn len(&self) -> usize {
        self.tree.len()
    }

    /// Whether nothing is mapped.
    pub fn is_empty(&self) -> bool {
        self.tree.len() == 0
    }

    /// Gives back a part of what an empty map once needed; false if nothing is left of that. To
    /// drop it does the same at once, however much there is.
    pub fn shed(&mut self) -> bool {
        self.recent.set(Slot::NONE);
        self.is_empty() && self.tree.shed()
    }

    /// Bytes in all areas.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes in areas that count as promised memory.
    pub fn promised_bytes(&self) -> u64 {
        self.promised
    }

    pub(crate) fn tree_mut(&mut self) -> &mut Tree<O> {
        &mut self.tree
    }

    /// The area that holds `at`.
    #[inline]
    pub fn find(&self, at: VirtAddr) -> Option<&Area<O>> {
        if let Some(recent) = self.recent.get().some() {
            let area = self.tree.area(recent);
            if area.contains(at) {
                return Some(area);
            }
        }
        let slot = self.tree.floor(at).some()?;
        let area = self.tree.area(slot);
        area.contains(at).then(|| {
            self.recent.set(slot);
            area
        })
    }

    /// The first area that starts above `at`.
    pub fn above(&self, at: VirtAddr) -> Option<&Area<O>> {
        let slot = self.behind(self.tree.floor(at)).some()?;
        Some(self.tree.area(slot))
    }

    /// The last area that starts at or below `at`, and the one behind it.
    pub(crate) fn neighbours(&self, at: VirtAddr) -> (Option<&Area<O>>, Option<&Area<O>>) {
        let before = self.tree.floor(at);
        let area = |slot: Slot| slot.some().map(|slot| self.tree.area(slot));
        (area(before), area(self.behind(before)))
    }

    /// All areas in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = &Area<O>> {
        self.from(self.tree.first())
    }

    fn from(&self, first: Slot) -> impl Iterator<Item = &Area<O>> {
        let mut next = first;
        core::iter::from_fn(move || {
            let node = self.tree.node(next.some()?);
            next = node.after;
            Some(&node.area)
        })
    }

    /// The areas that touch `range`, in ascending order.
    pub fn overlapping(&self, range: Range<VirtAddr>) -> impl Iterator<Item = &Area<O>> {
        let first = self.first_touching(&range);
        self.from(first)
            .take_while(move |area| area.start < range.end && !range.is_empty())
    }

    /// The first area that ends above the start of `range`.
    fn first_touching(&self, range: &Range<VirtAddr>) -> Slot {
        let slot = self.tree.floor(range.start);
        match slot.some() {
            Some(slot) if self.tree.area(slot).end > range.start => slot,
            _ => self.behind(slot),
        }
    }

    /// The area behind one, or the first behind none.
    fn behind(&self, slot: Slot) -> Slot {
        match slot.some() {
            Some(slot) => self.tree.node(slot).after,
            None => self.tree.first(),
        }
    }

    /// Whether every address of `range` lies in an area.
    pub fn covers(&self, range: Range<VirtAddr>) -> bool {
        let mut at = range.start;
        for area in self.overlapping(range.clone()) {
            if area.start > at {
                return false;
            }
            at = area.end;
        }
        at >= range.end
    }

    /// Puts an area where nothing is mapped.
    pub fn insert(&mut self, area: Area<O>) -> Result<(), TooManyAreas> {
        debug_assert!(
            self.overlapping(area.start..area.end).next().is_none(),
            "areas overlap"
        );
        if self.len() >= AREAS_MAX {
            return Err(TooManyAreas);
        }
        let before = self.tree.floor(area.start);
        let (bytes, promised) = (area.bytes(), area.promised_bytes());
        let joins = before
            .some()
            .is_some_and(|before| self.tree.area(before).joins(&area));
        let slot = if joins {
            self.tree.change(before, |before| before.end = area.end);
            before
        } else {
            self.tree.reserve(1)?;
            self.tree.insert_after(before, area)
        };
        self.bytes += bytes;
        self.promised += promised;
        self.merge_with_next(slot);
        Ok(())
    }

    /// Takes everything in `range` out.
    pub fn remove(&mut self, range: Range<VirtAddr>) -> Result<Removed<O>, TooManyAreas> {
        let mut removed = Removed::default();
        let first = self.first_touching(&range);
        let inside = self.from(first).take_while(|area| area.start < range.end);
        let backed = inside.filter(|area| area.backing.is_some()).count();
        if backed != 0 {
            let reserved = removed.objects.try_reserve_exact(backed);
            reserved.map_err(|_| TooManyAreas)?;
        }
        let mut slot = self.cut(first, &range)?;
        while let Some(gone) = slot.some().filter(|&slot| self.starts_in(slot, &range)) {
            slot = self.tree.node(gone).after;
            let area = self.tree.remove(gone);
            removed.bytes += area.bytes();
            self.promised -= area.promised_bytes();
            removed
                .objects
                .extend(area.backing.map(|backing| backing.object));
        }
        self.bytes -= removed.bytes;
        Ok(removed)
    }

    fn starts_in(&self, slot: Slot, range: &Range<VirtAddr>) -> bool {
        self.tree.area(slot).start < range.end
    }

    /// Changes the parts of areas that lie in `range`.
    pub fn update(
        &mut self,
        range: Range<VirtAddr>,
        mut change: impl FnMut(&mut Area<O>),
    ) -> Result<(), TooManyAreas> {
        let mut slot = self.cut(self.first_touching(&range), &range)?;
        if let Some(first) = slot.some() {
            slot = self.tree.node(first).before.some().unwrap_or(first);
        }
        while let Some(at) = slot.some().filter(|&slot| self.starts_in(slot, &range)) {
            slot = self.tree.node(at).after;
            if self.tree.area(at).start >= range.start {
                self.promised -= self.tree.area(at).promised_bytes();
                self.tree.change(at, &mut change);
                self.promised += self.tree.area(at).promised_bytes();
                if self.merge_with_previous(at) {
                    continue;
                }
            }
        }
        if let Some(behind) = slot.some() {
            self.merge_with_previous(behind);
        }
        Ok(())
    }

    /// Moves the start of the area at `start` down to `new_start`, where nothing is mapped.
    pub fn grow_down(&mut self, start: VirtAddr, new_start: VirtAddr) {
        let Some(slot) = self.tree.floor(start).some() else {
            return;
        };
        if self.tree.area(slot).start == start {
            self.bytes += start - new_start;
            self.promised -= self.tree.area(slot).promised_bytes();
            self.tree.change(slot, |area| area.start = new_start);
            self.promised += self.tree.area(slot).promised_bytes();
            self.merge_with_previous(slot);
        }
    }

    /// Makes the ends of `range` ends of areas, too. `first` is the first area that
    /// touches it; returns the first that lies in it.
    ///
    /// It takes no more than it needs: who removes a long range piece by piece, and was not
    /// refused the first, is refused none. What is cut and removed leaves room for an area.
    fn cut(&mut self, first: Slot, range: &Range<VirtAddr>) -> Result<Slot, TooManyAreas> {
        if range.is_empty() || first.is_none() {
            return Ok(Slot::NONE);
        }
        let last = match self.tree.area(first).end < range.end {
            true => self.tree.floor(VirtAddr(range.end.0 - 1)),
            false => first,
        };
        let cuts_first = self.is_inside(first, range.start);
        let cuts_last = self.is_inside(last, range.end);
        let more = usize::from(cuts_first) + usize::from(cuts_last);
        if self.len() + more > AREAS_MAX {
            return Err(TooManyAreas);
        }
        self.tree.reserve(more)?;
        let inside = match cuts_first {
            true => self.split(first, range.start),
            false => first,
        };
        if cuts_last {
            let last = if last == first { inside } else { last };
            self.split(last, range.end);
        }
        Ok(inside)
    }

    /// Whether `at` lies in an area, and not at its start.
    fn is_inside(&self, slot: Slot, at: VirtAddr) -> bool {
        let area = self.tree.area(slot);
        area.start < at && at < area.end
    }

    /// Cuts an area in two; returns the second. Room for it was reserved.
    fn split(&mut self, slot: Slot, at: VirtAddr) -> Slot {
        let area = self.tree.area(slot);
        let rest = area.part(at..area.end);
        self.tree.change(slot, |area| area.end = at);
        self.tree.insert_after(slot, rest)
    }

    /// Makes an area and its predecessor one, if they are alike.
    fn merge_with_previous(&mut self, slot: Slot) -> bool {
        match self.tree.node(slot).before.some() {
            Some(before) => self.merge_with_next(before),
            None => false,
        }
    }

    /// Makes an area and its successor one, if they are alike; the successor's slot goes.
    fn merge_with_next(&mut self, slot: Slot) -> bool {
        let node = self.tree.node(slot);
        let Some(after) = node.after.some() else {
            return false;
        };
        if !node.area.joins(self.tree.area(after)) {
            return false;
        }
        let next = self.tree.remove(after);
        self.tree.change(slot, |area| area.end = next.end);
        true
    }
}

impl<O: Clone + PartialEq> Default for AreaMap<O> {
    fn default() -> Self {
        Self::new()
    }
}
