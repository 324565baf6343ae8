//! What the end of a thread does to the locks it holds.
//!
//! A program may give the kernel a linked list of its robust locks; the kernel marks each
//! as ownerless and wakes one waiter, so that no other thread waits for a dead one
//! (get_robust_list(2)). The list lies in the program's memory: the walk is bounded, and a
//! bad address ends it.

use base::VirtAddr;
use core::sync::atomic::Ordering;

use super::pi::{OWNER_DIED, TID_MASK, WAITERS};
use super::wait::exchange;
use super::{MATCH_ANY, key_of, pi, wake};
use crate::error::Result;
use crate::mm::Access;
use crate::task::Thread;
use crate::user;

/// Locks that are looked at (Linux's ROBUST_LIST_LIMIT).
const LOCKS_MAX: usize = 2048;

/// The thread ends: releases its locks, clears and wakes the word that pthread_join(3) waits for.
pub fn exit_thread(thread: &Thread) {
    release_locks(thread, true);
}

/// The same for a thread whose program is about to be replaced.
pub fn exec_thread(thread: &Thread) {
    release_locks(thread, false);
}

fn release_locks(thread: &Thread, is_last: bool) {
    let head = thread.robust_list.swap(0, Ordering::Relaxed);
    if head != 0 {
        // The program's list may be broken; then its locks are its problem.
        let _ = walk(thread.id(), VirtAddr(head));
    }
    pi::release_all(thread, is_last);
    let word = VirtAddr(thread.clear_tid.swap(0, Ordering::Relaxed));
    if word.0 != 0 && user::write(word, 0u32).is_ok() {
        wake_both(word, 1);
    }
}

/// Waiters may have used either kind of key.
fn wake_both(word: VirtAddr, count: usize) {
    for private in [true, false] {
        if let Ok(key) = key_of(word, private) {
            wake(key, MATCH_ANY, count);
        }
    }
}

/// `struct robust_list_head`: next, offset of the word, the lock being taken or released.
fn walk(tid: u32, head: VirtAddr) -> Result<()> {
    let first: u64 = user::read(head)?;
    let offset: u64 = user::read(head + 8)?;
    let pending: u64 = user::read(head + 16)?;
    let mut entry = first;
    for _ in 0..LOCKS_MAX {
        let lock = VirtAddr(entry & !1);
        if lock == head {
            break;
        }
        let next: u64 = user::read(lock)?;
        if lock.0 != pending & !1 {
            release(tid, lock + offset, Kind::of(entry))?;
        }
        entry = next;
    }
    if pending & !1 != 0 {
        release(tid, VirtAddr(pending & !1) + offset, Kind::of(pending))?;
    }
    Ok(())
}

/// The lowest bit of a lock's address in the list.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Plain,
    /// With priority inheritance: who waits gets it from `pi`.
    Inheriting,
}

impl Kind {
    fn of(entry: u64) -> Self {
        match entry & 1 {
            0 => Self::Plain,
            _ => Self::Inheriting,
        }
    }
}

fn release(tid: u32, word: VirtAddr, kind: Kind) -> Result<()> {
    if word.0 & 3 != 0 {
        return Ok(());
    }
    let mark = |old: u32| {
        if old & TID_MASK == tid {
            old & WAITERS | OWNER_DIED
        } else {
            old
        }
    };
    let old = loop {
        match exchange(word, mark) {
            Ok(old) => break old,
            Err(fault) => user::resolve(fault.addr, Access::Write)?,
        }
    };
    if old & TID_MASK == tid && old & WAITERS != 0 && kind == Kind::Plain {
        wake_both(word, 1);
    }
    Ok(())
}
