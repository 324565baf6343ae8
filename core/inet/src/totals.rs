//! Counts that have a limit of the whole host, where several stacks serve it together.
//!
//! A limit that is parted among stacks is reached by one of them while the others are empty. So
//! each stack counts its own, for tools, and all of them count in one word, which is compared with
//! the limit. It is written as connections end or buffers grow, not for each packet.
//!
//! Not here: packet memory (`memory`), which is counted for each packet, and by quanta.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicUsize, Ordering};

/// What the stacks of one host have together.
#[derive(Clone, Default, Debug)]
pub struct Totals {
    pub(crate) time_waits: Arc<AtomicUsize>,
    pub(crate) orphans: Arc<AtomicUsize>,
    pub(crate) grown: Arc<AtomicUsize>,
}

/// A stack's own part of a total; taken away when it is dropped.
#[derive(Default, Debug)]
pub(crate) struct Tally {
    own: usize,
    all: Arc<AtomicUsize>,
}

impl Tally {
    pub fn add(&mut self, more: usize) {
        self.own += more;
        self.all.fetch_add(more, Ordering::Relaxed);
    }

    /// Takes away as many as were added, at most.
    pub fn sub(&mut self, less: usize) {
        let less = less.min(self.own);
        self.own -= less;
        self.all.fetch_sub(less, Ordering::Relaxed);
    }

    pub fn own(&self) -> usize {
        self.own
    }

    /// Those of all stacks.
    pub fn all(&self) -> usize {
        self.all.load(Ordering::Relaxed)
    }

    /// From now on it is a part of `all`.
    pub fn join(&mut self, all: &Arc<AtomicUsize>) {
        let own = self.own;
        self.sub(own);
        self.all = all.clone();
        self.add(own);
    }

    /// What it is a part of.
    pub fn total(&self) -> Arc<AtomicUsize> {
        self.all.clone()
    }
}

impl Drop for Tally {
    fn drop(&mut self) {
        self.sub(self.own);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tallies_that_share_a_total_see_each_other() {
        let totals = Totals::default();
        let [mut left, mut right] = [(); 2].map(|()| Tally::default());
        left.add(3);
        left.join(&totals.orphans);
        right.join(&totals.orphans);
        right.add(4);
        assert_eq!([left.own(), right.own()], [3, 4]);
        assert_eq!([left.all(), right.all()], [7, 7]);
        right.sub(5);
        assert_eq!([right.own(), left.all()], [0, 3], "no more than its own");
        right.add(2);
        drop(left);
        assert_eq!(right.all(), 2, "what a stack had that is gone");
    }
}
