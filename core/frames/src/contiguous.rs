//! Contiguous frames by way of one CPU's caches: huge pages are kept there, too.

use crate::local::{Backing, HUGE_BATCH, HUGE_PAGES, LocalFrames};
use crate::{Extent, FrameTable, Reach, Request, ZoneLock, Zones};

impl LocalFrames {
    /// Contiguous frames with any content.
    #[inline]
    pub fn alloc_extent(&self, backing: &impl Backing, request: Request) -> Option<Extent> {
        let extent = self.find(backing, request)?;
        backing.table().forget_zeros(extent.first(), extent.pages());
        Some(extent)
    }

    /// Contiguous frames full of zeros.
    pub fn alloc_extent_zeroed(&self, backing: &impl Backing, request: Request) -> Option<Extent> {
        let extent = self.find(backing, request)?;
        for frame in extent.first()..extent.first() + extent.pages() {
            let is_zero = backing.table().take_zero(frame);
            self.zero_unless(backing, frame, is_zero);
        }
        Some(extent)
    }

    /// Gives contiguous frames back.
    #[inline]
    pub fn free_extent(&self, backing: &impl Backing, extent: Extent) {
        let (first, pages) = extent.into_parts();
        let is_whole = pages == HUGE_PAGES && first.is_multiple_of(HUGE_PAGES);
        let is_huge = is_whole && self.home.holds(first);
        if is_huge && self.huge.push(first).is_ok() {
            return;
        }
        self.free_behind(backing, Extent::new(first, pages), is_huge);
    }

    /// Frames whose known-zero bits are still set.
    #[inline]
    fn find(&self, backing: &impl Backing, request: Request) -> Option<Extent> {
        if request.pages == HUGE_PAGES && request.reach == Reach::Any {
            self.counts.requests.add(1);
            if let Some(first) = self.huge.pop() {
                return Some(Extent::new(first, HUGE_PAGES));
            }
        }
        self.find_behind(backing, request)
    }

    #[cold]
    #[inline(never)]
    fn find_behind(&self, backing: &impl Backing, request: Request) -> Option<Extent> {
        let (zones, table, node) = (backing.zones(), backing.table(), self.node());
        let found = zones.alloc(table, request, node);
        if request.pages == HUGE_PAGES && request.reach == Reach::Any {
            self.counts.misses.add(1);
            for _ in 1..HUGE_BATCH.min(self.huge.limit()) {
                self.keep_huge(zones, table, request);
            }
            return found;
        }
        if found.is_none() && !self.huge.is_empty() {
            self.return_huge(zones, table);
            return zones.alloc(table, request, node);
        }
        found
    }

    fn keep_huge(&self, zones: &Zones<impl ZoneLock>, table: &FrameTable, request: Request) {
        let Some(extent) = zones.alloc_near(table, request, self.node()) else {
            return;
        };
        if let Err(first) = self.huge.push(extent.first()) {
            zones.free(table, Extent::new(first, HUGE_PAGES));
        }
    }

    #[cold]
    #[inline(never)]
    fn free_behind(&self, backing: &impl Backing, extent: Extent, is_huge: bool) {
        let zones = backing.zones();
        if is_huge && !self.huge.is_empty() {
            self.counts.returns.add(1);
            let mut batch = [0; HUGE_BATCH];
            let taken = self.huge.take_oldest(&mut batch);
            for &first in &batch[..taken] {
                zones.free(backing.table(), Extent::new(first, HUGE_PAGES));
            }
        }
        zones.free(backing.table(), extent);
    }

    /// Gives all huge pages back.
    pub(crate) fn return_huge(&self, zones: &Zones<impl ZoneLock>, table: &FrameTable) {
        while let Some(first) = self.huge.pop() {
            zones.free(table, Extent::new(first, HUGE_PAGES));
        }
    }
}
