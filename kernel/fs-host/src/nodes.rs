//! Inodes by their identity at the host.

use alloc::collections::BTreeMap;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;

use kernel_pagecache as pagecache;
use mach::mem::fallible;
use mach::sync::Spin;
use sync::Result;

use crate::node::Node;
use crate::remote::Remote;

/// Nodes known by identity at which the forgotten ones are dropped at first.
const KNOWN_AT_FIRST: usize = 1024;

/// The nodes of one folder that somebody holds: a file opened twice has one set of pages.
pub struct Nodes<R: Remote>(Spin<Known<R>>);

struct Known<R: Remote> {
    nodes: BTreeMap<u64, Weak<Node<R>>>,
    /// At so many the forgotten ones are dropped: twice those that lived, so that a look at all of them is rare.
    clean_at: usize,
}

impl<R: Remote> Default for Nodes<R> {
    fn default() -> Self {
        Self(Spin::new(Known {
            nodes: BTreeMap::new(),
            clean_at: KNOWN_AT_FIRST,
        }))
    }
}

impl<R: Remote> Nodes<R> {
    /// The node that has this identity.
    pub fn get(&self, number: u64) -> Option<Arc<Node<R>>> {
        self.0.lock().nodes.get(&number)?.upgrade()
    }

    /// Makes `node` the one that has this identity, unless there `is` one already, which somebody else found meanwhile:
    /// then that one.
    pub fn adopt(
        &self,
        number: u64,
        node: Arc<Node<R>>,
        is: impl Fn(&Node<R>) -> bool,
    ) -> Arc<Node<R>> {
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

    /// Brings all pages that were written to the host.
    pub fn write_back(&self) -> Result<()> {
        // One that fails keeps no other from the host.
        let results = self.all()?.into_iter();
        let results = results.map(|node| pagecache::write_back(&*node, 0..u64::MAX));
        results.fold(Ok(()), Result::and)
    }

    /// All that somebody holds.
    ///
    /// Errors: `OutOfMemory`.
    fn all(&self) -> Result<Vec<Arc<Node<R>>>> {
        let known = self.0.lock();
        Ok(fallible::collected(
            known.nodes.values().filter_map(Weak::upgrade),
        )?)
    }

    /// Gives up `wanted` pages that nobody uses, or all of them; returns how many.
    pub fn give_up_pages(&self, wanted: usize) -> usize {
        let (mut first, mut gone) = (0, 0);
        // One by one: a list of all nodes would need memory.
        while let Some((number, node)) = self.from(first).filter(|_| gone < wanted) {
            gone += node.map_or(0, |node| node.cache.give_up(wanted - gone));
            let Some(next) = number.checked_add(1) else {
                break;
            };
            first = next;
        }
        gone
    }

    /// The known file with the lowest identity from `first` on, if it still lives.
    fn from(&self, first: u64) -> Option<(u64, Option<Arc<Node<R>>>)> {
        let known = self.0.lock();
        let (number, node) = known.nodes.range(first..).next()?;
        Some((*number, node.upgrade()))
    }
}

impl<R: Remote> Known<R> {
    fn note(&mut self, number: u64, node: Weak<Node<R>>) {
        if self.nodes.len() >= self.clean_at {
            self.nodes.retain(|_, node| node.strong_count() != 0);
            self.clean_at = (2 * self.nodes.len()).max(KNOWN_AT_FIRST);
        }
        self.nodes.insert(number, node);
    }
}
