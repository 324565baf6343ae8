//! The waiters of the words that share a bucket, in their order.

use alloc::sync::Arc;
use alloc::vec::Vec;

use base::NoMemory;

use crate::host::{Host, Rank, Thread, room};
use crate::{Key, MATCH_ANY};

/// Who waits for what.
pub(crate) struct Entry<H: Host> {
    pub(crate) key: Key,
    pub(crate) bits: u32,
    /// The lock to which it is to be moved; then it is not woken here.
    pub(crate) target: Option<Key>,
    pub(crate) rank: Rank<H>,
    pub(crate) thread: Arc<H::Thread>,
}

impl<H: Host> Entry<H> {
    fn waits_for(&self, key: Key, bits: u32) -> bool {
        self.key == key && self.bits & bits != 0 && self.target.is_none()
    }
}

/// Entries by rank, then in order of arrival.
pub struct Bucket<H: Host>(Vec<Entry<H>>);

impl<H: Host> Bucket<H> {
    /// Nobody waits.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    pub(crate) fn make_room(&mut self, more: usize) -> Result<(), NoMemory> {
        room::<H, _>(&mut self.0, more)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Puts an entry, for which there is room, behind those that go before it.
    pub(crate) fn insert(&mut self, entry: Entry<H>) {
        if entry.rank >= H::Thread::FAIR {
            self.0.push(entry);
        } else {
            let place = self.0.partition_point(|before| before.rank <= entry.rank);
            self.0.insert(place, entry);
        }
    }

    /// The first who waits for `key`, and to which lock it is to be moved.
    pub(crate) fn first(&self, key: Key) -> Option<(Arc<H::Thread>, Option<Key>)> {
        let entry = self.0.iter().find(|entry| entry.key == key)?;
        Some((entry.thread.clone(), entry.target))
    }

    /// Waiters for `key` that match `bits`.
    pub(crate) fn count(&self, key: Key, bits: u32) -> usize {
        let waiters = self.0.iter();
        waiters.filter(|entry| entry.waits_for(key, bits)).count()
    }

    /// Wakes up to `count` waiters for `key` that match `bits`; returns how many.
    pub(crate) fn wake(&mut self, key: Key, bits: u32, count: usize) -> usize {
        let mut left = count;
        for entry in self.take(key, bits, &mut left) {
            entry.thread.waiter().wake(&entry.thread);
        }
        count - left
    }

    /// Takes out the first waiter for `key` that matches `bits`, for whom it has happened; the
    /// caller unparks it.
    pub(crate) fn take_first(&mut self, key: Key, bits: u32) -> Option<Arc<H::Thread>> {
        let first = self.0.iter().position(|entry| entry.waits_for(key, bits))?;
        let thread = self.0.remove(first).thread;
        thread.waiter().note_woken();
        Some(thread)
    }

    /// Takes out the first waiters for `key` that match `bits`, `left` at most, which counts
    /// down. One pass, however many there are.
    fn take(&mut self, key: Key, bits: u32, left: &mut usize) -> impl Iterator<Item = Entry<H>> {
        self.0.extract_if(.., move |entry| {
            let is_taken = *left != 0 && entry.waits_for(key, bits);
            *left -= usize::from(is_taken);
            is_taken
        })
    }

    /// Takes up to `count` waiters for `from`, or none without memory, and names them after `to`.
    pub(crate) fn rename(&mut self, from: Key, to: Key, count: usize) -> Vec<Entry<H>> {
        let mut moved = Vec::new();
        let mut left = count.min(self.0.len());
        if room::<H, _>(&mut moved, left).is_err() {
            return moved;
        }
        for mut entry in self.take(from, MATCH_ANY, &mut left) {
            entry.key = to;
            entry.thread.waiter().set_key(to);
            moved.push(entry);
        }
        moved
    }

    /// Takes the thread out; whether it was there.
    pub(crate) fn remove(&mut self, thread: &H::Thread) -> bool {
        let mut entries = self.0.iter();
        let index = entries.position(|entry| core::ptr::eq(&*entry.thread, thread));
        index.map(|index| self.0.remove(index)).is_some()
    }
}

impl<H: Host> Default for Bucket<H> {
    fn default() -> Self {
        Self::new()
    }
}
