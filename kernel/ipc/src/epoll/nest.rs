//! Epolls that watch epolls: no cycles, and no long chains.
//!
//! Each epoll knows its parents. Adding a child looks upwards only: the parents of the
//! parent, level by level, must not include the child, and with the child's own height
//! there must be no more than `LEVELS_MAX`. Additions are serialised by one lock, so
//! two of them cannot close a cycle together.

use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;

use super::Epoll;
use kernel::file::FileRef;
use mach::mem::fallible::{self, TryPush};
use sync::{Error, Mutex, MutexGuard, Result};

/// Epolls above one another, as in Linux (EP_MAX_NESTS and the watched file).
const LEVELS_MAX: usize = 5;

static NESTING: Mutex<()> = Mutex::new(());

/// Makes `parent` a parent of `child`; the lock is to be held until the entry is there.
pub(super) fn enter(parent: &Epoll, child: &Epoll) -> Result<MutexGuard<'static, ()>> {
    if core::ptr::eq(parent, child) {
        return Err(Error::Invalid);
    }
    let permit = NESTING.lock();
    let above = levels_above(parent, child)?;
    if above + levels_below(child)? > LEVELS_MAX {
        return Err(Error::TooManySymlinks);
    }
    child.parents.lock().try_push(parent.me.clone())?;
    Ok(permit)
}

/// Takes back one [`enter`].
pub(super) fn leave(parent: &Epoll, child: &Epoll) {
    let _permit = NESTING.lock();
    let mut parents = child.parents.lock();
    if let Some(index) = parents.iter().position(|other| other.ptr_eq(&parent.me)) {
        parents.swap_remove(index);
    }
}

/// Levels from `start` upwards, itself included; an error if `child` is among them.
fn levels_above(start: &Epoll, child: &Epoll) -> Result<usize> {
    let mut level: Vec<Arc<Epoll>> = start.me.upgrade().into_iter().collect();
    let mut count = 0;
    while !level.is_empty() {
        if level.iter().any(|epoll| core::ptr::eq(&**epoll, child)) {
            return Err(Error::TooManySymlinks);
        }
        count += 1;
        level = next_level(&level, Epoll::add_parents)?;
    }
    Ok(count)
}

/// Levels from `start` downwards, itself included.
fn levels_below(start: &Epoll) -> Result<usize> {
    let mut level: Vec<Arc<Epoll>> = start.me.upgrade().into_iter().collect();
    let mut count = 0;
    while !level.is_empty() {
        count += 1;
        level = next_level(&level, Epoll::add_children)?;
    }
    Ok(count)
}

/// The epolls that `add` finds for those of a level, each once.
fn next_level(
    level: &[Arc<Epoll>],
    add: fn(&Epoll, &mut Vec<Arc<Epoll>>) -> Result<()>,
) -> Result<Vec<Arc<Epoll>>> {
    let mut next = Vec::new();
    for epoll in level {
        add(epoll, &mut next)?;
    }
    next.sort_unstable_by_key(|epoll| Arc::as_ptr(epoll).addr());
    next.dedup_by_key(|epoll| Arc::as_ptr(epoll).addr());
    Ok(next)
}

impl Epoll {
    fn add_parents(&self, to: &mut Vec<Arc<Epoll>>) -> Result<()> {
        let mut parents = self.parents.lock();
        parents.retain(|parent| parent.strong_count() != 0);
        for parent in parents.iter().filter_map(Weak::upgrade) {
            to.try_push(parent)?;
        }
        Ok(())
    }

    fn add_children(&self, to: &mut Vec<Arc<Epoll>>) -> Result<()> {
        let members = {
            let entries = self.entries.lock();
            fallible::collected(entries.values().map(|entry| entry.open()))?
        };
        for open in members.iter().filter_map(|open| open.upgrade()) {
            if let Some(child) = of(&open.file) {
                to.try_push(child)?;
            }
        }
        Ok(())
    }
}

/// The epoll behind a file, if it is one.
fn of(file: &FileRef) -> Option<Arc<Epoll>> {
    file.as_any()
        .downcast_ref::<Epoll>()
        .and_then(|epoll| epoll.me.upgrade())
}
