//! Inodes by their identity at the host.

use alloc::collections::BTreeMap;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;

use mach::mem::fallible;
use mach::sync::Spin;
use sync::Result;

/// Nodes known by identity at which the forgotten ones are dropped at first.
const KNOWN_AT_FIRST: usize = 1024;

/// The nodes of one folder that somebody holds: a file opened twice has one set of pages.
pub struct Nodes<N>(Spin<Known<N>>);

struct Known<N> {
    nodes: BTreeMap<u64, Weak<N>>,
    /// At so many the forgotten ones are dropped: twice those that lived, so that a look at all of them is rare.
    clean_at: usize,
}

impl<N> Default for Nodes<N> {
    fn default() -> Self {
        Self(Spin::new(Known {
            nodes: BTreeMap::new(),
            clean_at: KNOWN_AT_FIRST,
        }))
    }
}

impl<N> Nodes<N> {
    /// The node that has this identity.
    pub fn get(&self, number: u64) -> Option<Arc<N>> {
        self.0.lock().nodes.get(&number)?.upgrade()
    }

    /// Makes `node` the one that has this identity, unless there `is` one already, which somebody else found meanwhile:
    /// then that one.
    pub fn adopt(&self, number: u64, node: Arc<N>, is: impl Fn(&N) -> bool) -> Arc<N> {
        let mut known = self.0.lock();
        let other = known.nodes.get(&number).and_then(Weak::upgrade);
        match other {
            Some(other) if is(&other) => other,
            other => {
                known.note(number, Arc::downgrade(&node));
                drop(known);
                // Not under the lock, as it may be the last who holds it.
                drop(other);
                node
            }
        }
    }

    /// All that somebody holds.
    ///
    /// Errors: `OutOfMemory`.
    pub fn all(&self) -> Result<Vec<Arc<N>>> {
        let known = self.0.lock();
        Ok(fallible::collected(
            known.nodes.values().filter_map(Weak::upgrade),
        )?)
    }

    /// Has nodes give up `wanted` pages; `from` has one of them give up so many at most, and says how many it did.
    pub fn give_up_pages(&self, wanted: usize, from: impl Fn(&N, usize) -> usize) -> usize {
        let (mut first, mut gone) = (0, 0);
        // One by one: a list of all nodes would need memory.
        while let Some((number, node)) = self.from(first).filter(|_| gone < wanted) {
            gone += node.map_or(0, |node| from(&node, wanted - gone));
            let Some(next) = number.checked_add(1) else {
                break;
            };
            first = next;
        }
        gone
    }

    /// The known file with the lowest identity from `first` on, if it still lives.
    fn from(&self, first: u64) -> Option<(u64, Option<Arc<N>>)> {
        let known = self.0.lock();
        let (number, node) = known.nodes.range(first..).next()?;
        Some((*number, node.upgrade()))
    }
}

impl<N> Known<N> {
    fn note(&mut self, number: u64, node: Weak<N>) {
        if self.nodes.len() >= self.clean_at {
            self.nodes.retain(|_, node| node.strong_count() != 0);
            self.clean_at = (2 * self.nodes.len()).max(KNOWN_AT_FIRST);
        }
        self.nodes.insert(number, node);
    }
}
