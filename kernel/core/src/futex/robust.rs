//! What the end of a thread does to the locks it holds.
//!
//! A program may give the kernel a linked list of its robust locks; the kernel marks each
//! as ownerless and wakes one waiter, so that no other thread waits for a dead one
//! (get_robust_list(2)). The list lies in the program's memory: the walk is bounded, and a
//! bad address ends it.

use base::VirtAddr;
use core::sync::atomic::Ordering;

use super::wait::exchange;
use super::{MATCH_ANY, key_of, wake};
use crate::error::Result;
use crate::mm::Access;
use crate::task::Thread;
use crate::user;

/// Locks that are looked at (Linux' ROBUST_LIST_LIMIT).
const LOCKS_MAX: usize = 2048;
const WAITERS: u32 = 0x8000_0000;
const OWNER_DIED: u32 = 0x4000_0000;
const TID_MASK: u32 = 0x3fff_ffff;

/// The thread ends: releases its robust locks, clears and wakes the word that
/// pthread_join(3) waits for.
pub fn exit_thread(thread: &Thread) {
    let head = thread.robust_list.swap(0, Ordering::Relaxed);
    if head != 0 {
        // The program's list may be broken; then its locks are its problem.
        let _ = walk(thread.id(), VirtAddr(head));
    }
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
            release(tid, lock + offset)?;
        }
        entry = next;
    }
    if pending & !1 != 0 {
        release(tid, VirtAddr(pending & !1) + offset)?;
    }
    Ok(())
}

fn release(tid: u32, word: VirtAddr) -> Result<()> {
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
    if old & TID_MASK == tid && old & WAITERS != 0 {
        wake_both(word, 1);
    }
    Ok(())
}
