//! The waiters, hashed by the word they wait for.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};

use mach::mem::fallible::TryGrow;
use mach::sync::{Spin, SpinGuard};

use super::{Key, pi};
use crate::error::Result;
use crate::sched::{self, Rank};
use crate::task::Thread;

const BUCKETS: usize = 256;
const _: () = assert!(BUCKETS.is_power_of_two(), "the hash is masked");

/// A thread's own part of its wait.
#[derive(Default)]
pub struct Waiter {
    /// Where it waits; changes when it is requeued.
    key: Spin<Key>,
    woken: AtomicBool,
    /// Its locks with priority inheritance.
    pub(super) pi: Spin<pi::Share>,
}

impl Waiter {
    pub(super) fn is_woken(&self) -> bool {
        self.woken.load(Ordering::Acquire)
    }

    /// A wait begins.
    pub(super) fn expect_wake(&self) {
        self.woken.store(false, Ordering::Relaxed);
    }

    /// What `thread` waits for has happened.
    pub(super) fn wake(&self, thread: &Arc<Thread>) {
        self.woken.store(true, Ordering::Release);
        sched::wake(thread);
    }
}

pub(super) struct Entry {
    key: Key,
    bits: u32,
    /// The lock to which it is to be moved; it is not woken here.
    target: Option<Key>,
    rank: Rank,
    thread: Arc<Thread>,
}

impl Entry {
    fn waits_for(&self, key: Key, bits: u32) -> bool {
        self.key == key && self.bits & bits != 0 && self.target.is_none()
    }
}

/// Entries by rank, then in order of arrival.
#[derive(Default)]
pub(super) struct Bucket(Vec<Entry>);

static TABLE: [Spin<Bucket>; BUCKETS] = [const { Spin::new(Bucket(Vec::new())) }; BUCKETS];

pub(super) fn lock(key: Key) -> SpinGuard<'static, Bucket> {
    TABLE[key.bucket(BUCKETS)].lock()
}

impl Bucket {
    /// The current thread starts to wait.
    ///
    /// Errors: `OutOfMemory`.
    pub(super) fn add(
        &mut self,
        key: Key,
        bits: u32,
        target: Option<Key>,
        thread: Arc<Thread>,
    ) -> Result<()> {
        self.0.make_room(1)?;
        *thread.futex.key.lock() = key;
        thread.futex.expect_wake();
        let rank = thread.sched.class.rank();
        self.insert(Entry {
            key,
            bits,
            target,
            rank,
            thread,
        });
        Ok(())
    }

    /// Puts an entry, for which there is room, behind those that go before it.
    fn insert(&mut self, entry: Entry) {
        match entry.rank.is_realtime() {
            false => self.0.push(entry),
            true => {
                let place = self.0.partition_point(|before| before.rank <= entry.rank);
                self.0.insert(place, entry);
            }
        }
    }

    /// The first who waits for `key`, and to which lock it is to be moved.
    pub(super) fn first(&self, key: Key) -> Option<(Arc<Thread>, Option<Key>)> {
        let entry = self.0.iter().find(|entry| entry.key == key)?;
        Some((entry.thread.clone(), entry.target))
    }

    /// Waiters for `key` that match `bits`.
    pub(super) fn count(&self, key: Key, bits: u32) -> usize {
        self.0
            .iter()
            .filter(|entry| entry.waits_for(key, bits))
            .count()
    }

    /// Wakes up to `count` waiters for `key` that match `bits`; returns how many.
    pub(super) fn wake(&mut self, key: Key, bits: u32, count: usize) -> usize {
        let mut left = count;
        for entry in self.take(key, bits, &mut left) {
            entry.thread.futex.wake(&entry.thread);
        }
        count - left
    }

    /// Takes out the first waiters for `key` that match `bits`, `left` at most, which counts
    /// down. One pass, however many there are.
    fn take(&mut self, key: Key, bits: u32, left: &mut usize) -> impl Iterator<Item = Entry> {
        self.0.extract_if(.., move |entry| {
            let is_taken = *left != 0 && entry.waits_for(key, bits);
            *left -= usize::from(is_taken);
            is_taken
        })
    }

    /// Takes up to `count` waiters for `from`, or none without memory, and names them after `to`.
    fn rename(&mut self, from: Key, to: Key, count: usize) -> Vec<Entry> {
        let mut moved = Vec::new();
        let mut left = count.min(self.0.len());
        if moved.make_room(left).is_err() {
            return moved;
        }
        for mut entry in self.take(from, super::MATCH_ANY, &mut left) {
            entry.key = to;
            *entry.thread.futex.key.lock() = to;
            moved.push(entry);
        }
        moved
    }

    /// Takes the thread out; whether it was there.
    pub(super) fn remove(&mut self, thread: &Thread) -> bool {
        let index = self
            .0
            .iter()
            .position(|entry| core::ptr::eq(&*entry.thread, thread));
        index.map(|index| self.0.remove(index)).is_some()
    }
}

/// Takes the thread out of the table; false if a waker has done so.
pub(super) fn give_up(thread: &Thread) -> bool {
    loop {
        let key = *thread.futex.key.lock();
        if lock(key).remove(thread) {
            return true;
        }
        if thread.futex.is_woken() {
            return false;
        }
        // It was requeued between the two looks.
        mach::cpu::relax();
    }
}

/// Both buckets of two keys, locked in the order of the table.
pub(super) struct Pair {
    first: SpinGuard<'static, Bucket>,
    second: Option<SpinGuard<'static, Bucket>>,
    swapped: bool,
}

impl Pair {
    pub(super) fn lock(one: Key, two: Key) -> Self {
        let (a, b) = (one.bucket(BUCKETS), two.bucket(BUCKETS));
        let first = TABLE[a.min(b)].lock();
        let second = (a != b).then(|| TABLE[a.max(b)].lock());
        Self {
            first,
            second,
            swapped: a > b,
        }
    }

    /// The bucket of the first key.
    pub(super) fn one(&mut self) -> &mut Bucket {
        match &mut self.second {
            Some(second) if self.swapped => second,
            _ => &mut self.first,
        }
    }

    /// The bucket of the second key.
    pub(super) fn two(&mut self) -> &mut Bucket {
        match &mut self.second {
            Some(second) if !self.swapped => second,
            _ => &mut self.first,
        }
    }

    /// Moves up to `count` waiters from the first key to the second; returns how many.
    pub(super) fn requeue(&mut self, from: Key, to: Key, count: usize) -> usize {
        let wanted = count.min(self.one().0.len());
        let has_room = self.two().0.make_room(wanted).is_ok();
        let moved = self
            .one()
            .rename(from, to, if has_room { count } else { 0 });
        let number = moved.len();
        let two = self.two();
        moved.into_iter().for_each(|entry| two.insert(entry));
        number
    }
}
