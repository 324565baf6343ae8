//! All areas of an address space.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::Range;

use base::VirtAddr;

use crate::Area;

/// Areas that one address space may have, as in Linux (`vm.max_map_count`).
pub const AREAS_MAX: usize = 65_530;

/// The change would make more than [`AREAS_MAX`] areas; nothing was changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TooManyAreas;

/// Disjoint areas by address; see the crate's theory.
#[derive(Clone, Debug)]
pub struct AreaMap<O> {
    areas: BTreeMap<VirtAddr, Area<O>>,
    bytes: u64,
}

impl<O: Clone + PartialEq> AreaMap<O> {
    /// No areas.
    pub const fn new() -> Self {
        Self {
            areas: BTreeMap::new(),
            bytes: 0,
        }
    }

    /// Number of areas.
    pub fn len(&self) -> usize {
        self.areas.len()
    }

    /// Whether nothing is mapped.
    pub fn is_empty(&self) -> bool {
        self.areas.is_empty()
    }

    /// Bytes in all areas.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The area that holds `at`.
    #[inline]
    pub fn find(&self, at: VirtAddr) -> Option<&Area<O>> {
        let (_, area) = self.areas.range(..=at).next_back()?;
        area.contains(at).then_some(area)
    }

    /// The first area that starts above `at`.
    pub fn above(&self, at: VirtAddr) -> Option<&Area<O>> {
        use core::ops::Bound::{Excluded, Unbounded};
        self.areas
            .range((Excluded(at), Unbounded))
            .next()
            .map(|(_, area)| area)
    }

    /// All areas in ascending order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Area<O>> {
        self.areas.values()
    }

    /// The areas that touch `range`, in ascending order.
    pub fn overlapping(&self, range: Range<VirtAddr>) -> impl Iterator<Item = &Area<O>> {
        let first = self
            .find(range.start)
            .map_or(range.start, |area| area.start);
        let empty = range.is_empty();
        self.areas
            .range(first..range.end.max(first))
            .map(|(_, area)| area)
            .filter(move |_| !empty)
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
        let range = area.start..area.end;
        self.bytes += area.bytes();
        match self.before(range.start) {
            Some(before) if before.joins(&area) => before.end = area.end,
            _ => drop(self.areas.insert(area.start, area)),
        }
        self.merge_at(range.end);
        Ok(())
    }

    /// Takes everything in `range` out; what was there comes back, cut to the range.
    pub fn remove(&mut self, range: Range<VirtAddr>) -> Result<Vec<Area<O>>, TooManyAreas> {
        self.split_ends(&range)?;
        let inside = self.areas.extract_if(range, |_, _| true);
        let removed: Vec<_> = inside.map(|(_, area)| area).collect();
        self.bytes -= removed.iter().map(Area::bytes).sum::<u64>();
        Ok(removed)
    }

    /// Changes the parts of areas that lie in `range`.
    pub fn update(
        &mut self,
        range: Range<VirtAddr>,
        mut change: impl FnMut(&mut Area<O>),
    ) -> Result<(), TooManyAreas> {
        self.split_ends(&range)?;
        self.areas
            .range_mut(range.clone())
            .for_each(|(_, area)| change(area));
        let mut at = range.start;
        loop {
            self.merge_at(at);
            match self.above(at) {
                Some(next) if next.start <= range.end => at = next.start,
                _ => return Ok(()),
            }
        }
    }

    /// Moves the start of the area at `start` down to `new_start`, where nothing is mapped.
    pub fn grow_down(&mut self, start: VirtAddr, new_start: VirtAddr) {
        if let Some(mut area) = self.areas.remove(&start) {
            self.bytes += start - new_start;
            area.start = new_start;
            self.areas.insert(new_start, area);
            self.merge_at(new_start);
        }
    }

    /// The last area that starts below `at`.
    fn before(&mut self, at: VirtAddr) -> Option<&mut Area<O>> {
        self.areas.range_mut(..at).next_back().map(|(_, area)| area)
    }

    /// Makes the ends of `range` ends of areas, too.
    fn split_ends(&mut self, range: &Range<VirtAddr>) -> Result<(), TooManyAreas> {
        if self.len() + 2 > AREAS_MAX && self.splits(range) {
            return Err(TooManyAreas);
        }
        self.split_at(range.start);
        self.split_at(range.end);
        Ok(())
    }

    fn splits(&self, range: &Range<VirtAddr>) -> bool {
        let inside = |at| self.find(at).is_some_and(|area| area.start < at);
        inside(range.start) || inside(range.end)
    }

    fn split_at(&mut self, at: VirtAddr) {
        if let Some(area) = self.before(at).filter(|area| at < area.end) {
            let rest = area.part(at..area.end);
            area.end = at;
            self.areas.insert(at, rest);
        }
    }

    /// Makes the areas that meet at `at` one, if they are alike.
    fn merge_at(&mut self, at: VirtAddr) {
        let Some(next) = self.areas.get(&at) else {
            return;
        };
        let Some((_, area)) = self.areas.range(..at).next_back() else {
            return;
        };
        if area.joins(next) {
            let end = next.end;
            self.areas.remove(&at);
            if let Some(area) = self.before(at) {
                area.end = end;
            }
        }
    }
}

impl<O: Clone + PartialEq> Default for AreaMap<O> {
    fn default() -> Self {
        Self::new()
    }
}
