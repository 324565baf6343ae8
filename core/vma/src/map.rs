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
        self.put(area);
        self.merge_at(range.start);
        self.merge_at(range.end);
        Ok(())
    }

    /// Takes everything in `range` out; what was there comes back, cut to the range.
    pub fn remove(&mut self, range: Range<VirtAddr>) -> Result<Vec<Area<O>>, TooManyAreas> {
        self.split_ends(&range)?;
        let starts: Vec<_> = self.areas.range(range).map(|(&start, _)| start).collect();
        Ok(starts
            .into_iter()
            .filter_map(|start| self.take(start))
            .collect())
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
        let starts: Vec<_> = self
            .areas
            .range(range.clone())
            .map(|(&start, _)| start)
            .collect();
        starts.into_iter().for_each(|start| self.merge_at(start));
        self.merge_at(range.end);
        Ok(())
    }

    /// Moves the start of the area at `start` down to `new_start`, where nothing is mapped.
    pub fn grow_down(&mut self, start: VirtAddr, new_start: VirtAddr) {
        if let Some(mut area) = self.take(start) {
            area.start = new_start;
            self.put(area);
            self.merge_at(new_start);
        }
    }

    fn put(&mut self, area: Area<O>) {
        self.bytes += area.bytes();
        self.areas.insert(area.start, area);
    }

    fn take(&mut self, start: VirtAddr) -> Option<Area<O>> {
        let area = self.areas.remove(&start)?;
        self.bytes -= area.bytes();
        Some(area)
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
        let Some(start) = self
            .find(at)
            .map(|area| area.start)
            .filter(|&start| start < at)
        else {
            return;
        };
        if let Some(area) = self.take(start) {
            self.put(area.part(start..at));
            self.put(area.part(at..area.end));
        }
    }

    /// Makes the areas that meet at `at` one, if they are alike.
    fn merge_at(&mut self, at: VirtAddr) {
        let Some(next) = self.areas.get(&at) else {
            return;
        };
        let Some((&before, area)) = self.areas.range(..at).next_back() else {
            return;
        };
        if area.joins(next) {
            let end = next.end;
            self.take(at);
            if let Some(mut area) = self.take(before) {
                area.end = end;
                self.put(area);
            }
        }
    }
}

impl<O: Clone + PartialEq> Default for AreaMap<O> {
    fn default() -> Self {
        Self::new()
    }
}
