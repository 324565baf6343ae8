//! What the table asks of the kernel around it.

use alloc::sync::Arc;
use alloc::vec::Vec;

use base::lock::Family;
use base::{Memory, NoMemory};

use crate::Waiter;

/// The kernel.
pub trait Host: Sized + 'static {
    /// Its locks and flags.
    type Family: Family;
    /// Whom it asks for memory.
    type Memory: Memory;
    /// Its threads.
    type Thread: Thread<Host = Self>;

    /// The thread of a number.
    fn find(id: u32) -> Option<Arc<Self::Thread>>;

    /// Lets time pass in a loop that waits for another CPU.
    fn relax();

    /// A chance for others to run, between batches; no lock is held.
    fn resched_point();
}

/// One of its threads. Numbers are unique.
pub trait Thread: Sized {
    /// Whose it is.
    type Host: Host<Thread = Self>;
    /// The order in which threads get what they wait for: the lower goes first.
    type Rank: Copy + Ord;

    /// The rank of all threads that share fairly: the last.
    const FAIR: Self::Rank;

    /// Its part of the table.
    fn waiter(&self) -> &Waiter<Self::Host>;

    /// Its number.
    fn id(&self) -> u32;

    /// The rank by which it competes: its own, or a better one that it was lent.
    fn rank(&self) -> Self::Rank;

    /// Lends it a rank in place of what it was lent before.
    fn lend(&self, rank: Self::Rank);

    /// Ends its park, or the next one.
    fn unpark(self: &Arc<Self>);
}

/// A 32-bit word of a program's memory, read and changed without waiting for its page.
pub trait Word {
    /// Its page is missing.
    type Fault;

    /// What it holds.
    fn load(&self) -> Result<u32, Self::Fault>;

    /// Stores `new` if it holds `old`; returns what it held.
    fn compare_exchange(&self, old: u32, new: u32) -> Result<u32, Self::Fault>;
}

/// A lock of `H`'s family.
pub type LockOf<H, T> = <<H as Host>::Family as Family>::Lock<T>;
/// A rank of `H`'s threads.
pub type Rank<H> = <<H as Host>::Thread as Thread>::Rank;

/// Makes room for `more` elements beyond those that are there.
#[inline]
pub(crate) fn room<H: Host, T>(list: &mut Vec<T>, more: usize) -> Result<(), NoMemory> {
    if list.capacity() - list.len() >= more {
        return Ok(());
    }
    H::Memory::reserve(|| list.try_reserve(more))
}
