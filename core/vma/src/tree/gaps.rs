//! Gaps: how wide they are, and the way down to one.

use super::Tree;
use crate::arena::Slot;
use crate::{Area, STACK_GAP_BYTES};

impl<O> Tree<O> {
    /// Measures the gap below an area anew.
    pub(super) fn measure(&mut self, slot: Slot) {
        if slot.is_none() {
            return;
        }
        let node = self.node(slot);
        let below = match node.before.some() {
            Some(before) => self.area(before).end.0,
            None => 0,
        };
        let gap = usable_end(&node.area).saturating_sub(below);
        self.arena.get_mut(slot).gap = gap;
        let mut above = slot;
        while !above.is_none() && self.node(above).bound < gap {
            let node = self.arena.get_mut(above);
            node.bound = gap;
            above = node.up;
        }
    }

    /// The highest area at or below `from` with `bytes` (not 0) free below it.
    pub fn highest_gap(&mut self, from: Slot, bytes: u64) -> Slot {
        let mut slot = from;
        while !slot.is_none() {
            if self.node(slot).gap >= bytes {
                return slot;
            }
            let found = self.highest_gap_in(self.node(slot).left, bytes);
            if !found.is_none() {
                return found;
            }
            slot = self.ancestor_below(slot);
        }
        slot
    }

    /// The nearest ancestor with lower addresses.
    fn ancestor_below(&self, mut slot: Slot) -> Slot {
        loop {
            let up = self.node(slot).up;
            if up.is_none() || self.node(up).right == slot {
                return up;
            }
            slot = up;
        }
    }

    /// The highest area in a subtree with `bytes` free below. As deep as the tree.
    fn highest_gap_in(&mut self, slot: Slot, bytes: u64) -> Slot {
        let node = self.node(slot);
        if node.bound < bytes {
            return Slot::NONE;
        }
        let (left, right, gap) = (node.left, node.right, node.gap);
        let found = self.highest_gap_in(right, bytes);
        if !found.is_none() {
            return found;
        }
        if gap >= bytes {
            return slot;
        }
        let found = self.highest_gap_in(left, bytes);
        if found.is_none() {
            self.recount(slot);
        }
        found
    }
}

/// Where free memory below an area ends: stacks keep their distance.
pub(crate) fn usable_end<O>(area: &Area<O>) -> u64 {
    let guard = if area.traits.grows_down {
        STACK_GAP_BYTES
    } else {
        0
    };
    area.start.0.saturating_sub(guard)
}
