//! The waiters, hashed by the word they wait for.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};

use mach::sync::{Spin, SpinGuard};

use super::Key;
use crate::sched;
use crate::task::Thread;

const BUCKETS: usize = 256;
const _: () = assert!(BUCKETS.is_power_of_two(), "the hash is masked");

/// A thread's own part of its wait.
#[derive(Default)]
pub struct Waiter {
    /// Where it waits; changes when it is requeued.
    key: Spin<Key>,
    woken: AtomicBool,
}

impl Waiter {
    pub(super) fn is_woken(&self) -> bool {
        self.woken.load(Ordering::Acquire)
    }
}

pub(super) struct Entry {
    key: Key,
    bits: u32,
    thread: Arc<Thread>,
}

/// Entries in order of arrival.
#[derive(Default)]
pub(super) struct Bucket(Vec<Entry>);

static TABLE: [Spin<Bucket>; BUCKETS] = [const { Spin::new(Bucket(Vec::new())) }; BUCKETS];

pub(super) fn lock(key: Key) -> SpinGuard<'static, Bucket> {
    TABLE[key.bucket(BUCKETS)].lock()
}

impl Bucket {
    /// The current thread starts to wait.
    pub(super) fn add(&mut self, key: Key, bits: u32, thread: Arc<Thread>) {
        *thread.futex.key.lock() = key;
        thread.futex.woken.store(false, Ordering::Relaxed);
        self.0.push(Entry { key, bits, thread });
    }

    /// Wakes up to `count` waiters for `key` that match `bits`; returns how many.
    pub(super) fn wake(&mut self, key: Key, bits: u32, count: usize) -> usize {
        let mut woken = 0;
        let mut index = 0;
        while woken < count && index < self.0.len() {
            let entry = &self.0[index];
            if entry.key == key && entry.bits & bits != 0 {
                let entry = self.0.remove(index);
                entry.thread.futex.woken.store(true, Ordering::Release);
                sched::wake(&entry.thread);
                woken += 1;
            } else {
                index += 1;
            }
        }
        woken
    }

    /// Takes up to `count` waiters for `from` and names them after `to`.
    fn rename(&mut self, from: Key, to: Key, count: usize) -> Vec<Entry> {
        let mut moved = Vec::new();
        let mut index = 0;
        while moved.len() < count && index < self.0.len() {
            if self.0[index].key == from {
                let mut entry = self.0.remove(index);
                entry.key = to;
                *entry.thread.futex.key.lock() = to;
                moved.push(entry);
            } else {
                index += 1;
            }
        }
        moved
    }

    fn remove(&mut self, thread: &Thread) -> bool {
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
        let moved = self.one().rename(from, to, count);
        let number = moved.len();
        self.two().0.extend(moved);
        number
    }
}
