//! Why something was not done.

use base::NoMemory;

/// Why a call ended early; nothing has changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stop<F> {
    /// A page is missing: bring it in and begin again.
    Fault(F),
    /// It cannot be.
    Refused(Refusal),
}

/// Why it cannot be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// The word does not hold what was expected.
    Changed,
    /// Another thread has the lock.
    Taken,
    /// The thread would wait for itself, or through too many others.
    Deadlock,
    /// The word names a thread that does not exist or can have no locks.
    NoOwner,
    /// The word names another owner than the table, or waiters are of another kind.
    Inconsistent,
    /// The thread has not got the lock.
    NotOwner,
    /// There is no memory.
    OutOfMemory,
}

impl From<NoMemory> for Refusal {
    fn from(_: NoMemory) -> Self {
        Self::OutOfMemory
    }
}

impl<F> From<Refusal> for Stop<F> {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl<F> From<NoMemory> for Stop<F> {
    fn from(_: NoMemory) -> Self {
        Self::Refused(Refusal::OutOfMemory)
    }
}
