//! What a set asks of the kernel around it.

use alloc::sync::{Arc, Weak};

use base::lock::Family;
use base::{Memory, NoMemory};

use crate::{Entry, Events, Set, Sharing};

/// The kernel.
pub trait Host: Sized + 'static {
    /// Its locks and flags.
    type Family: Family;
    /// Whom it asks for memory.
    type Memory: Memory;
    /// Its open files.
    type Open: Open<Self>;
    /// Who waits for a set.
    type Waiters: Waiters;

    /// A chance for others to run; no lock is held.
    fn resched_point();
}

/// An open file that can be watched.
pub trait Open<H: Host> {
    /// What is true now of `interest`; it may say more.
    fn poll(&self, interest: Events) -> Events;

    /// Tells `entry` from now on when something of `interest` may have become true.
    fn observe(&self, entry: Weak<Entry<H>>, interest: Events, sharing: Sharing);

    /// Tells it of this from now on.
    fn change_interest(&self, entry: Weak<Entry<H>>, interest: Events);

    /// Tells it nothing any more.
    fn forget(&self, entry: Weak<Entry<H>>);

    /// The set behind it, if it is one.
    fn nested(&self) -> Option<Arc<Set<H>>>;
}

/// The threads that wait for a set, and who watches it as a file.
pub trait Waiters: Default {
    /// Wakes the thread that has waited longest; false if none waits.
    fn wake_one(&self) -> bool;

    /// Tells those who watch the set that it may be readable.
    fn notify_observers(&self);
}

/// Why a set refuses something.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// The file is watched under this number already.
    Exists,
    /// It is not watched.
    NotFound,
    /// Exclusive watches do not change, and are not of sets; no set watches itself.
    Invalid,
    /// The sets would watch each other, or be too many above one another.
    TooDeep,
    /// There is no memory.
    OutOfMemory,
}

impl From<NoMemory> for Refusal {
    fn from(_: NoMemory) -> Self {
        Self::OutOfMemory
    }
}
