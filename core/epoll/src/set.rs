//! The object of epoll_create(2).

use alloc::collections::BTreeMap;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;

use base::Memory;
use base::lock::{Family, Lock};

use crate::Watch;
use crate::entry::Entry;
use crate::host::{Host, Refusal, Waiters};
use crate::ready::Ready;

/// The number under which a file was added, and the open file's identity: `dup` makes two.
pub type Key = (u32, usize);

type Entries<H> = BTreeMap<Key, Arc<Entry<H>>>;

/// Watches files.
pub struct Set<H: Host> {
    entries: <H::Family as Family>::Lock<Entries<H>>,
    pub(crate) ready: Ready<H::Family, Entry<H>>,
    /// Who waits for it, and who watches it.
    pub waiters: H::Waiters,
    pub(crate) parents: <H::Family as Family>::Lock<Vec<Weak<Set<H>>>>,
    pub(crate) me: Weak<Set<H>>,
}

impl<H: Host> Set<H> {
    /// Watching nothing yet.
    pub fn new() -> Arc<Self> {
        Arc::new_cyclic(|me| Self {
            entries: Lock::new(BTreeMap::new()),
            ready: Ready::default(),
            waiters: H::Waiters::default(),
            parents: Lock::new(Vec::new()),
            me: me.clone(),
        })
    }

    /// Watches `open`, which is no set, under the number `fd`.
    pub fn add(&self, fd: u32, open: &Arc<H::Open>, watch: Watch) -> Result<(), Refusal> {
        self.restore(fd, open, watch.armed())
    }

    /// The same as another set has watched it ([`members`](Self::members)): a one-shot that has reported
    /// stays silent.
    pub fn restore(&self, fd: u32, open: &Arc<H::Open>, watch: Watch) -> Result<(), Refusal> {
        let entry = Entry::new(self.me.clone(), open, watch);
        self.insert(key(fd, open), &entry)?;
        entry.start(open);
        Ok(())
    }

    /// Puts the entry into the map, and removes those of its number whose file is gone.
    fn insert(&self, key: Key, entry: &Arc<Entry<H>>) -> Result<(), Refusal> {
        let mut entries = self.entries.lock();
        if entries.contains_key(&key) {
            return Err(Refusal::Exists);
        }
        while let Some(dead) = dead_under(&entries, key.0) {
            entries.remove(&dead);
        }
        // Each entry is queued once at most: room for all is there before any is queued.
        let watched = entries.len() + 1;
        self.ready
            .make_room::<H::Memory>(watched, Entry::is_removed)?;
        entries.insert(key, entry.clone());
        Ok(())
    }

    /// Passes all that it watches to `give`, with their numbers.
    pub fn members(&self, mut give: impl FnMut(u32, &Arc<H::Open>, Watch)) {
        for ((fd, _), entry) in self.entries.lock().iter() {
            if let Some(open) = entry.open().upgrade().filter(|_| entry.is_alive()) {
                give(*fd, &open, entry.watch());
            }
        }
    }

    /// Watches for something else from now on; also re-arms a one-shot entry.
    pub fn modify(&self, fd: u32, open: &Arc<H::Open>, watch: Watch) -> Result<(), Refusal> {
        let entry = self.entries.lock().get(&key(fd, open)).cloned();
        let entry = entry.ok_or(Refusal::NotFound)?;
        if entry.is_exclusive() || watch.is_exclusive() {
            return Err(Refusal::Invalid);
        }
        entry.change(open, watch);
        Ok(())
    }

    /// Watches no longer.
    pub fn remove(&self, fd: u32, open: &Arc<H::Open>) -> Result<(), Refusal> {
        let entry = self.entries.lock().remove(&key(fd, open));
        entry.ok_or(Refusal::NotFound)?.stop(open);
        Ok(())
    }

    /// Nobody can add entries any more. Not in `drop`: the last reference may be one that
    /// a notifier holds together with its locks.
    pub fn close(&self) {
        let entries = core::mem::take(&mut *self.entries.lock());
        for entry in entries.into_values() {
            entry.stop_if_alive();
            H::resched_point();
        }
        while self.ready.pop().is_some() {
            H::resched_point();
        }
    }

    /// An entry may be ready: queues it and wakes one waiter; whether there was one.
    pub(crate) fn queue(&self, entry: Arc<Entry<H>>) -> bool {
        self.ready.push(entry);
        let is_waited_for = self.waiters.wake_one();
        self.waiters.notify_observers();
        is_waited_for
    }

    /// Adds the open files that it watches to `to`.
    pub(crate) fn add_open(&self, to: &mut Vec<Weak<H::Open>>) -> Result<(), Refusal> {
        let entries = self.entries.lock();
        H::Memory::reserve(|| to.try_reserve(entries.len()))?;
        to.extend(entries.values().map(|entry| entry.open()));
        Ok(())
    }
}

fn key<T>(fd: u32, open: &Arc<T>) -> Key {
    (fd, Arc::as_ptr(open).addr())
}

/// An entry of the number `fd` whose file is gone.
fn dead_under<H: Host>(entries: &Entries<H>, fd: u32) -> Option<Key> {
    let mut same = entries.range((fd, 0)..=(fd, usize::MAX));
    let dead = same.find(|(_, entry)| !entry.is_alive())?;
    Some(*dead.0)
}
