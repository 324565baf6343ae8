//! A balanced tree of areas that knows how wide the gaps below each of its branches are.
//!
//! The problem: a program may have 65,530 areas, and each fault looks for one, each `mmap`
//! for a place between them.
//!
//! The idea: an AVL tree (Adelson-Velsky, Landis 1962) by address. Every node knows its
//! neighbours by address too, so going through a range costs a step per area. And it
//! has a bound for the gaps of its subtree, so that a free place is found on one way down.
//! A gap that grows raises the bounds above it, one that shrinks leaves them: a search that
//! a bound misled lowers it. So a search costs O(log n), spread over the changes before.
//!
//! Invariants, whenever a public method returns:
//! - The heights of two siblings differ by one at most; `height` and `gap` are right.
//! - A node's `bound` is not less than its own gap and the bounds of its children.

use base::VirtAddr;

use crate::arena::{Arena, NoMemory, Node, Slot};
use crate::{Area, STACK_GAP_BYTES};

#[derive(Clone, Debug)]
pub(crate) struct Tree<O> {
    arena: Arena<O>,
    root: Slot,
    first: Slot,
    len: usize,
}

impl<O> Tree<O> {
    pub const fn new() -> Self {
        Self {
            arena: Arena::new(),
            root: Slot::NONE,
            first: Slot::NONE,
            len: 0,
        }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn first(&self) -> Slot {
        self.first
    }

    /// Makes sure that `more` insertions find room.
    #[inline]
    pub fn reserve(&mut self, more: usize) -> Result<(), NoMemory> {
        self.arena.reserve(more)
    }

    #[inline(always)]
    pub fn node(&self, slot: Slot) -> &Node<O> {
        self.arena.get(slot)
    }

    #[inline(always)]
    pub fn area(&self, slot: Slot) -> &Area<O> {
        &self.arena.get(slot).area
    }

    /// The last area that starts at or below `at`.
    pub fn floor(&self, at: VirtAddr) -> Slot {
        let (mut slot, mut found) = (self.root, Slot::NONE);
        while !slot.is_none() {
            let node = self.node(slot);
            if node.area.start <= at {
                found = slot;
                slot = node.right;
            } else {
                slot = node.left;
            }
        }
        found
    }

    /// Puts an area right behind `before` (`NONE`: in front of all). Room was reserved.
    pub fn insert_after(&mut self, before: Slot, area: Area<O>) -> Slot {
        let slot = self.arena.put(area);
        let after = match before.some() {
            Some(before) => self.node(before).after,
            None => self.first,
        };
        self.join(before, slot);
        self.join(slot, after);
        // One of two neighbours always has the place between them free.
        let up = if !before.is_none() && self.node(before).right.is_none() {
            self.arena.get_mut(before).right = slot;
            before
        } else if after.is_none() {
            self.root = slot;
            after
        } else {
            self.arena.get_mut(after).left = slot;
            after
        };
        self.arena.get_mut(slot).up = up;
        self.len += 1;
        self.measure(slot);
        self.measure(after);
        self.settle(slot);
        slot
    }

    /// Makes two nodes neighbours by address.
    fn join(&mut self, before: Slot, after: Slot) {
        match before.some() {
            Some(before) => self.arena.get_mut(before).after = after,
            None => self.first = after,
        }
        if let Some(after) = after.some() {
            self.arena.get_mut(after).before = before;
        }
    }

    /// Takes an area out.
    pub fn remove(&mut self, slot: Slot) -> Area<O> {
        let (before, after) = (self.node(slot).before, self.node(slot).after);
        self.join(before, after);
        let changed = self.unlink(slot, after);
        self.len -= 1;
        let area = self.arena.take(slot);
        self.settle(changed);
        self.measure(after);
        area
    }

    /// Takes a node out of the tree, not out of the order; returns the lowest node whose
    /// subtree changed.
    fn unlink(&mut self, slot: Slot, after: Slot) -> Slot {
        let node = self.node(slot);
        let (left, right, up) = (node.left, node.right, node.up);
        if left.is_none() || right.is_none() {
            let child = if left.is_none() { right } else { left };
            self.replace_child(up, slot, child);
            return up;
        }
        // The next area is the leftmost of the right branch: it takes the node's place.
        let (height, bound) = (node.height, node.bound);
        let heir = self.node(after);
        let (heir_up, heir_right) = (heir.up, heir.right);
        if heir_up != slot {
            self.replace_child(heir_up, after, heir_right);
            self.hang(after, right, Side::Right);
        }
        self.hang(after, left, Side::Left);
        self.replace_child(up, slot, after);
        let heir = self.arena.get_mut(after);
        (heir.height, heir.bound) = (height, bound);
        if heir_up == slot { after } else { heir_up }
    }

    fn hang(&mut self, parent: Slot, child: Slot, side: Side) {
        let node = self.arena.get_mut(parent);
        match side {
            Side::Left => node.left = child,
            Side::Right => node.right = child,
        }
        self.arena.get_mut(child).up = parent;
    }

    /// Puts `child` in the place of `old` under `up`.
    fn replace_child(&mut self, up: Slot, old: Slot, child: Slot) {
        self.arena.get_mut(child).up = up;
        if up.is_none() {
            self.root = child;
            return;
        }
        let parent = self.arena.get_mut(up);
        if parent.left == old {
            parent.left = child;
        } else {
            parent.right = child;
        }
    }

    /// Changes an area without changing its place in the order.
    #[inline]
    pub fn change(&mut self, slot: Slot, change: impl FnOnce(&mut Area<O>)) {
        let node = self.arena.get_mut(slot);
        let (start, end) = (node.area.start, node.area.end);
        change(&mut node.area);
        let (moved, ended) = (node.area.start != start, node.area.end != end);
        let after = node.after;
        if moved {
            self.measure(slot);
        }
        if ended {
            self.measure(after);
        }
    }

    /// Measures the gap below an area anew.
    fn measure(&mut self, slot: Slot) {
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

    /// Restores heights and balance from `slot` upwards.
    fn settle(&mut self, mut slot: Slot) {
        while !slot.is_none() {
            let node = self.node(slot);
            let (up, height) = (node.up, node.height);
            let (left, right) = (self.node(node.left).height, self.node(node.right).height);
            if left.abs_diff(right) > 1 {
                self.balance(slot, left > right);
            } else {
                let now = 1 + left.max(right);
                if now == height {
                    return;
                }
                self.arena.get_mut(slot).height = now;
            }
            slot = up;
        }
    }

    /// Rotates where one branch is two higher than the other.
    fn balance(&mut self, slot: Slot, leans_left: bool) {
        let (left, right) = (self.node(slot).left, self.node(slot).right);
        if leans_left {
            let child = self.node(left);
            if self.node(child.right).height > self.node(child.left).height {
                self.rotate(left, Side::Left);
            }
            self.rotate(slot, Side::Right);
        } else {
            let child = self.node(right);
            if self.node(child.left).height > self.node(child.right).height {
                self.rotate(right, Side::Right);
            }
            self.rotate(slot, Side::Left);
        }
    }

    /// Moves `slot` down to a side; its child on the other side takes its place.
    fn rotate(&mut self, slot: Slot, side: Side) {
        let node = self.node(slot);
        let up = node.up;
        let top = match side {
            Side::Left => node.right,
            Side::Right => node.left,
        };
        self.replace_child(up, slot, top);
        match side {
            Side::Left => {
                self.hang(slot, self.node(top).left, Side::Right);
                self.hang(top, slot, Side::Left);
            }
            Side::Right => {
                self.hang(slot, self.node(top).right, Side::Left);
                self.hang(top, slot, Side::Right);
            }
        }
        self.recount(slot);
        self.recount(top);
    }

    /// Counts a node's height and bound anew from its children.
    fn recount(&mut self, slot: Slot) {
        let node = self.node(slot);
        let (left, right) = (self.node(node.left), self.node(node.right));
        let height = 1 + left.height.max(right.height);
        let bound = node.gap.max(left.bound).max(right.bound);
        let node = self.arena.get_mut(slot);
        (node.height, node.bound) = (height, bound);
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

#[derive(Clone, Copy)]
enum Side {
    Left,
    Right,
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

#[cfg(test)]
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
