//! What the end of a thread does to the locks in its program's list.
//!
//! A program may give the kernel a linked list of its robust locks; the kernel marks each as
//! ownerless and wakes one waiter, so that no other thread waits for a dead one
//! (get_robust_list(2)). The list lies in the program's memory and may be broken: the walk is
//! bounded, and the first address that cannot be read ends it.

use crate::pi::{OWNER_DIED, TID_MASK, WAITERS};

/// Locks that are looked at (Linux's ROBUST_LIST_LIMIT).
pub const LOCKS_MAX: usize = 2048;

/// The lowest bit of a lock's address in the list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A waiter is woken, and takes it.
    Plain,
    /// With priority inheritance: who waits gets it from [`crate::pi`].
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

/// Calls `release` with the address of the word of each lock in the list at `head`, a `struct
/// robust_list_head`: the first entry, the offset from an entry to its word, and the lock that
/// was being taken or released.
pub fn walk<E>(
    head: u64,
    read: impl Fn(u64) -> Result<u64, E>,
    mut release: impl FnMut(u64, Kind) -> Result<(), E>,
) -> Result<(), E> {
    let mut entry = read(head)?;
    let offset = read(head.wrapping_add(8))?;
    let pending = read(head.wrapping_add(16))?;
    for _ in 0..LOCKS_MAX {
        let lock = entry & !1;
        if lock == head {
            break;
        }
        let next = read(lock)?;
        if lock != pending & !1 {
            release(lock.wrapping_add(offset), Kind::of(entry))?;
        }
        entry = next;
    }
    if pending & !1 != 0 {
        release((pending & !1).wrapping_add(offset), Kind::of(pending))?;
    }
    Ok(())
}

/// What the word of a lock becomes when the thread `tid` ends: no change if another has it.
pub fn without_owner(word: u32, tid: u32) -> u32 {
    match word & TID_MASK == tid {
        true => word & WAITERS | OWNER_DIED,
        false => word,
    }
}

/// Whether a waiter is to be woken, for a word that was `old` before.
pub fn is_to_wake(old: u32, tid: u32, kind: Kind) -> bool {
    old & TID_MASK == tid && old & WAITERS != 0 && kind == Kind::Plain
}
