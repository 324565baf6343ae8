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

mod balance;
#[cfg(test)]
mod check;
mod gaps;

pub(crate) use gaps::usable_end;

use base::VirtAddr;

use crate::Area;
use crate::arena::{Arena, NoMemory, Node, Slot};
use balance::Side;

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

    /// Gives back a part of the memory of a tree without areas; false if it has none.
    pub fn shed(&mut self) -> bool {
        self.arena.shed()
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
}
