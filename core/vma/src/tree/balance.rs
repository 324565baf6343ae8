//! Heights: how branches are hung, turned and counted anew.

use super::Tree;
use crate::arena::Slot;

#[derive(Clone, Copy)]
pub(super) enum Side {
    Left,
    Right,
}

impl<O> Tree<O> {
    pub(super) fn hang(&mut self, parent: Slot, child: Slot, side: Side) {
        let node = self.arena.get_mut(parent);
        match side {
            Side::Left => node.left = child,
            Side::Right => node.right = child,
        }
        self.arena.get_mut(child).up = parent;
    }

    /// Puts `child` in the place of `old` under `up`.
    pub(super) fn replace_child(&mut self, up: Slot, old: Slot, child: Slot) {
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

    /// Restores heights and balance from `slot` upwards.
    pub(super) fn settle(&mut self, mut slot: Slot) {
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
    pub(super) fn recount(&mut self, slot: Slot) {
        let node = self.node(slot);
        let (left, right) = (self.node(node.left), self.node(node.right));
        let height = 1 + left.height.max(right.height);
        let bound = node.gap.max(left.bound).max(right.bound);
        let node = self.arena.get_mut(slot);
        (node.height, node.bound) = (height, bound);
    }
}
