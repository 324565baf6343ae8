//! epoll: many files, and the list of those that may be ready.
//!
//! An [`Epoll`] holds an [`Entry`] for each file that it watches. The entry observes the
//! file: told of a change, it puts itself on the ready list and wakes one waiter. Who
//! waits takes entries off the list and asks each file what is true *now*, so the list
//! may name too many but never too few. A level-triggered entry that is still ready goes
//! back to the end; an edge-triggered one does not.
//!
//! `Entry::is_queued` is cleared before the file is asked: a change after that queues
//! the entry again, a change before it is part of the answer.
//!
//! An entry refers weakly to its open file, so that it ends with the last descriptor of
//! that; what is left of it goes when the descriptor's number is watched anew.
//!
//! An epoll may watch another. `nest` keeps such chains short and free of cycles, which
//! bounds the depth of notifications and of [`kernel::file::File::poll`].
//!
//! Lock order: a watched file's pollee, then the ready list, then the waiters; the map of
//! entries is never held together with them.

mod entry;
mod nest;
mod wait;

pub use entry::{Event, Trigger, Watch};

use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::String;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicUsize, Ordering};

use mach::mem::fallible::{self, TryGrow};
use mach::sync::Spin;
use sched::resched_point;
use sync::poll::{Events, Pollee};
use sync::{Error, Result, WaitQueue};

use entry::Entry;
use kernel::file::{Fd, File, OpenFile};

/// The open file's identity, beside the number under which it was added: `dup` makes two.
type Key = (Fd, usize);

/// The object of epoll_create(2).
pub struct Epoll {
    entries: Spin<BTreeMap<Key, Arc<Entry>>>,
    ready: Spin<VecDeque<Arc<Entry>>>,
    /// Length of `ready`, for who decides whether to wait.
    ready_count: AtomicUsize,
    waiters: WaitQueue,
    /// For poll, select and other epolls that watch this one.
    pollee: Pollee,
    parents: Spin<Vec<Weak<Epoll>>>,
    me: Weak<Epoll>,
}

fn key(fd: Fd, open: &Arc<OpenFile>) -> Key {
    (fd, Arc::as_ptr(open).addr())
}

impl Epoll {
    /// Watching nothing yet.
    pub fn new() -> Arc<Self> {
        Arc::new_cyclic(|me| Self {
            entries: Spin::new(BTreeMap::new()),
            ready: Spin::new(VecDeque::new()),
            ready_count: AtomicUsize::new(0),
            waiters: WaitQueue::new(),
            pollee: Pollee::new(),
            parents: Spin::new(Vec::new()),
            me: me.clone(),
        })
    }

    /// Watches `open` under the number `fd`.
    ///
    /// Errors: `Exists`; `OutOfMemory`; `NotPermitted` for files that are always ready; `TooManySymlinks`
    /// for a cycle or a chain of epolls that is too long; `Invalid` for itself.
    pub fn add(&self, fd: Fd, open: &Arc<OpenFile>, watch: Watch) -> Result<()> {
        if open.file.pollee().is_none() {
            return Err(Error::NotPermitted);
        }
        let nested = open.file.as_any().downcast_ref::<Self>();
        if nested.is_some() && watch.is_exclusive() {
            return Err(Error::Invalid);
        }
        let _permit = nested.map(|child| nest::enter(self, child)).transpose()?;
        let entry = Entry::new(self.me.clone(), open, watch);
        self.insert(key(fd, open), &entry)?;
        entry.start(&open.file);
        Ok(())
    }

    /// Puts the entry into the map, and removes those of its number whose file is gone.
    fn insert(&self, key: Key, entry: &Arc<Entry>) -> Result<()> {
        let mut entries = self.entries.lock();
        if entries.contains_key(&key) {
            return Err(Error::Exists);
        }
        let same_fd = entries.range((key.0, 0)..=(key.0, usize::MAX));
        let dead = same_fd
            .filter(|(_, entry)| !entry.is_alive())
            .map(|(key, _)| *key);
        for key in fallible::collected(dead)? {
            entries.remove(&key);
        }
        // Each entry is queued once at most: room for all is there before any is queued.
        let mut ready = self.ready.lock();
        let missing = (entries.len() + 1).saturating_sub(ready.len());
        ready.make_room(missing)?;
        drop(ready);
        entries.insert(key, entry.clone());
        Ok(())
    }

    /// Watches for something else from now on; also re-arms a one-shot entry.
    pub fn modify(&self, fd: Fd, open: &Arc<OpenFile>, watch: Watch) -> Result<()> {
        let entry = self.entries.lock().get(&key(fd, open)).cloned();
        let entry = entry.ok_or(Error::NotFound)?;
        if entry.is_exclusive() || watch.is_exclusive() {
            return Err(Error::Invalid);
        }
        entry.change(&open.file, watch);
        Ok(())
    }

    /// Watches no longer.
    pub fn remove(&self, fd: Fd, open: &Arc<OpenFile>) -> Result<()> {
        let entry = self.entries.lock().remove(&key(fd, open));
        let entry = entry.ok_or(Error::NotFound)?;
        entry.stop(&open.file);
        if let Some(child) = open.file.as_any().downcast_ref::<Self>() {
            nest::leave(self, child);
        }
        Ok(())
    }

    /// An entry may be ready: queues it and wakes one waiter; whether there was one.
    fn queue(&self, entry: Arc<Entry>) -> bool {
        self.push(entry);
        let is_waited_for = self.waiters.wake_one();
        self.pollee.notify_observers(Events::READABLE);
        is_waited_for
    }

    fn push(&self, entry: Arc<Entry>) {
        let mut ready = self.ready.lock();
        ready.push_back(entry);
        self.ready_count.store(ready.len(), Ordering::SeqCst);
    }

    fn pop(&self) -> Option<Arc<Entry>> {
        let mut ready = self.ready.lock();
        let entry = ready.pop_front();
        self.ready_count.store(ready.len(), Ordering::SeqCst);
        entry
    }

    fn may_be_ready(&self) -> bool {
        self.ready_count.load(Ordering::SeqCst) != 0
    }
}

impl File for Epoll {
    fn ignores_seeks(&self) -> bool {
        true
    }

    fn poll(&self) -> Events {
        if self.has_ready() {
            Events::READABLE
        } else {
            Events::empty()
        }
    }

    fn pollee(&self) -> Option<&Pollee> {
        Some(&self.pollee)
    }

    /// Nobody can add entries any more. Not in `drop`: the last reference may be one that
    /// a notifier holds together with the lock of a pollee.
    fn close(&self, _open: &OpenFile) {
        let entries = core::mem::take(&mut *self.entries.lock());
        for entry in entries.into_values() {
            entry.stop_if_alive();
            resched_point();
        }
        while self.pop().is_some() {
            resched_point();
        }
    }

    fn label(&self) -> String {
        String::from("anon_inode:[eventpoll]")
    }

    fn as_any(&self) -> &dyn core::any::Any {
        self
    }
}
