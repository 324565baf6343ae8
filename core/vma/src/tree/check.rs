//! The invariants, for tests.

use super::{Tree, usable_end};
use crate::arena::Slot;

impl<O> Tree<O> {
    /// Checks all invariants; returns the height.
    pub fn check(&self) -> u32 {
        let mut slot = self.first;
        let mut counted = 0;
        while !slot.is_none() {
            let after = self.node(slot).after;
            if let Some(after) = after.some() {
                assert_eq!(self.node(after).before, slot);
                assert!(self.area(slot).end <= self.area(after).start);
            }
            counted += 1;
            slot = after;
        }
        assert_eq!(counted, self.len);
        self.check_branch(self.root, Slot::NONE).0
    }

    fn check_branch(&self, slot: Slot, up: Slot) -> (u32, u64) {
        if slot.is_none() {
            return (0, 0);
        }
        let node = self.node(slot);
        assert_eq!(node.up, up);
        let (left, right) = (
            self.check_branch(node.left, slot),
            self.check_branch(node.right, slot),
        );
        assert!(left.0.abs_diff(right.0) <= 1);
        assert_eq!(node.height, 1 + left.0.max(right.0));
        assert!(node.bound >= node.gap.max(left.1).max(right.1));
        let below = self.node(slot).before.some();
        let below = below.map_or(0, |slot| self.area(slot).end.0);
        assert_eq!(node.gap, usable_end(&node.area).saturating_sub(below));
        (node.height, node.bound)
    }
}
