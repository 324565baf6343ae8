//! Threads in the order of their keys, the first of them apart.
//!
//! The problem: most queues are empty when a thread comes, and again when it is taken. A tree is
//! searched and changed each time, with the queue locked, while other CPUs want to bring theirs.
//!
//! The idea: the first thread has a place of its own. One that is alone never sees the tree, and
//! who runs next is known without a search.
//!
//! Invariant **First**: the first thread is before all in the tree, and only an empty tree has
//! none before it.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use core::mem;

use crate::policy::Rank;

/// What threads are ordered by.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Key {
    /// The better goes first.
    pub rank: Rank,
    /// Virtual run time; 0 for real-time ranks.
    pub vruntime_ns: u64,
    /// Of arrival.
    pub order: i64,
}

impl Key {
    pub(crate) const FIRST_FAIR: Self = Self {
        rank: Rank::FAIR,
        vruntime_ns: 0,
        order: i64::MIN,
    };
}

/// Threads by their keys, of which no two are equal.
pub(crate) struct Ready<T> {
    first: Option<(Key, Arc<T>)>,
    later: BTreeMap<Key, Arc<T>>,
}

impl<T> Ready<T> {
    pub(crate) const fn new() -> Self {
        Self {
            first: None,
            later: BTreeMap::new(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.later.len()
    }

    #[inline]
    pub(crate) fn insert(&mut self, key: Key, thread: Arc<T>) {
        let later = match &mut self.first {
            None => {
                self.first = Some((key, thread));
                return;
            }
            Some(first) if key < first.0 => mem::replace(first, (key, thread)),
            Some(_) => (key, thread),
        };
        self.later.insert(later.0, later.1);
    }

    #[inline]
    pub(crate) fn remove(&mut self, key: &Key) -> Option<Arc<T>> {
        if self.first_key() != Some(*key) {
            return self.later.remove(key);
        }
        let second = match self.later.is_empty() {
            true => None,
            false => self.later.pop_first(),
        };
        mem::replace(&mut self.first, second).map(|(_, thread)| thread)
    }

    pub(crate) fn get(&self, key: &Key) -> Option<&Arc<T>> {
        match &self.first {
            Some((first, thread)) if first == key => Some(thread),
            _ => self.later.get(key),
        }
    }

    #[inline]
    pub(crate) fn first_key(&self) -> Option<Key> {
        self.first.as_ref().map(|(key, _)| *key)
    }

    /// The first key from `least` on.
    pub(crate) fn first_from(&self, least: Key) -> Option<Key> {
        let first = self.first_key().filter(|first| *first >= least);
        first.or_else(|| self.later.range(least..).next().map(|(key, _)| *key))
    }

    /// All in their order.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = (&Key, &Arc<T>)> {
        let first = self.first.iter().map(|(key, thread)| (key, thread));
        first.chain(&self.later)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use models::for_each_seed;

    const KEYS: u64 = 12;

    fn key(vruntime_ns: u64) -> Key {
        let rank = match vruntime_ns < KEYS / 3 {
            true => Rank(10),
            false => Rank::FAIR,
        };
        Key {
            rank,
            vruntime_ns,
            order: 0,
        }
    }

    #[test]
    fn threads_stand_as_in_a_plain_tree() {
        for_each_seed(1000, |seed, mut random| {
            let mut plain = BTreeMap::new();
            let mut ready = Ready::new();
            for _ in 0..60 {
                let key = key(random.below(KEYS as usize) as u64);
                match plain.remove(&key) {
                    Some(thread) => assert_eq!(ready.remove(&key), Some(thread), "seed {seed}"),
                    None => {
                        let thread = Arc::new(key.vruntime_ns);
                        assert_eq!(ready.remove(&key), None, "seed {seed}");
                        ready.insert(key, thread.clone());
                        plain.insert(key, thread);
                    }
                }
                assert!(ready.iter().eq(&plain), "seed {seed}");
                assert!(ready.iter().rev().eq(plain.iter().rev()), "seed {seed}");
                assert_eq!(ready.len(), plain.len());
                assert_eq!(ready.get(&key), plain.get(&key));
                assert_eq!(ready.first_key(), plain.keys().next().copied());
                let from = plain.range(key..).next().map(|(key, _)| *key);
                assert_eq!(ready.first_from(key), from, "seed {seed}");
            }
        });
    }
}
