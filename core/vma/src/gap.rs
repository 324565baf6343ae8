//! Where to put a mapping whose address nobody cares about.

use base::VirtAddr;

use crate::AreaMap;

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
    pub fn highest_gap(&self, bytes: u64, align: u64, window: Window) -> Option<VirtAddr> {
        let mut high = window.high.0;
        for area in self.iter().rev().filter(|area| area.start < window.high) {
            if let Some(at) = fit(area.end.0.max(window.low.0), high, bytes, align) {
                return Some(at);
            }
            let gap = if area.traits.grows_down {
                STACK_GAP_BYTES
            } else {
                0
            };
            high = high.min(area.start.0.saturating_sub(gap));
        }
        fit(window.low.0, high, bytes, align)
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
