//! A thread's part in the locks with priority inheritance.

use alloc::vec::Vec;

use base::NoMemory;

use crate::Key;
use crate::host::{Host, Rank, Thread, room};

/// For which lock it waits, and which contended ones are its own; only changed under the lock of
/// [`Locks`](crate::pi::Locks).
pub(crate) struct Share<H: Host> {
    pub(crate) waits_for: Option<Key>,
    /// Its own, with the best rank that waits for each.
    owned: Vec<(Key, Rank<H>)>,
    /// It has given up all it had, and gets nothing any more.
    pub(crate) has_ended: bool,
}

impl<H: Host> Default for Share<H> {
    fn default() -> Self {
        Self {
            waits_for: None,
            owned: Vec::new(),
            has_ended: false,
        }
    }
}

impl<H: Host> Share<H> {
    /// The best rank that waits for anything of its own.
    pub(crate) fn best(&self) -> Rank<H> {
        let ranks = self.owned.iter().map(|(_, rank)| *rank);
        ranks.min().unwrap_or(H::Thread::FAIR)
    }

    pub(crate) fn make_room(&mut self, more: usize) -> Result<(), NoMemory> {
        room::<H, _>(&mut self.owned, more)
    }

    /// A lock is its own now; there is room.
    pub(crate) fn own(&mut self, key: Key, best: Rank<H>) {
        self.owned.push((key, best));
    }

    pub(crate) fn forget(&mut self, key: Key) {
        self.owned.retain(|(own, _)| *own != key);
    }

    pub(crate) fn note(&mut self, key: Key, best: Rank<H>) {
        for (_, rank) in self.owned.iter_mut().filter(|(own, _)| *own == key) {
            *rank = best;
        }
    }

    pub(crate) fn owned(&self) -> impl Iterator<Item = Key> {
        self.owned.iter().map(|(key, _)| *key)
    }

    /// Takes one of its locks out.
    pub(crate) fn pop(&mut self) -> Option<Key> {
        self.owned.pop().map(|(key, _)| key)
    }
}
