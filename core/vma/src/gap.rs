//! Where to put a mapping whose address nobody cares about.

use core::ops::Range;

use base::{PAGE_BYTES, VirtAddr};

use crate::AreaMap;
use crate::tree::usable_end;

/// The addresses in which a free place may lie.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Window {
    /// First address.
    pub low: VirtAddr,
    /// First address behind.
    pub high: VirtAddr,
}

/// Unmapped bytes kept between a stack and what lies below it.
pub const STACK_GAP_BYTES: u64 = 256 << 12;

impl<O: Clone + PartialEq> AreaMap<O> {
    /// The highest free place for `bytes` bytes in `window`, at a multiple of `align`
    /// (a power of two, at least a page).
    ///
    /// Below the topmost area only gaps count in which the place can be aligned wherever
    /// they start.
    pub fn highest_gap(&mut self, bytes: u64, align: u64, window: Window) -> Option<VirtAddr> {
        let tree = self.tree_mut();
        let top = tree.floor(VirtAddr(window.high.0.checked_sub(1)?));
        let top_end = top.some().map_or(0, |top| tree.area(top).end.0);
        let above = fit(top_end.max(window.low.0), window.high.0, bytes, align);
        if above.is_some() || top.is_none() {
            return above;
        }
        let enough = bytes.checked_add(align - PAGE_BYTES as u64)?;
        let slot = tree.highest_gap(top, enough).some()?;
        let high = usable_end(tree.area(slot));
        let low = high - tree.node(slot).gap;
        fit(low.max(window.low.0), high.min(window.high.0), bytes, align)
    }

    /// The addresses around `at` that lie in no area; none if `at` lies in one.
    pub fn hole_at(&self, at: VirtAddr) -> Range<VirtAddr> {
        let (before, after) = self.neighbours(at);
        let start = before.map_or(VirtAddr(0), |area| area.end);
        let end = after.map_or(VirtAddr(u64::MAX), |area| area.start);
        if start > at { at..at } else { start..end }
    }

    /// Whether nothing is mapped in the `bytes` bytes from `at`, which lie in `window`.
    pub fn is_free(&self, at: VirtAddr, bytes: u64, window: Window) -> bool {
        let Some(end) = at.checked_add(bytes) else {
            return false;
        };
        at >= window.low && end <= window.high && self.overlapping(at..end).next().is_none()
    }
}

/// The highest place for `bytes` in `[low, high)`.
fn fit(low: u64, high: u64, bytes: u64, align: u64) -> Option<VirtAddr> {
    let at = high.checked_sub(bytes)? & !(align - 1);
    (at >= low).then_some(VirtAddr(at))
}
