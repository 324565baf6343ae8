//! Where bytes come from and go to.

use base::NoMemory;

/// Why the pipe itself refuses something.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// There is no memory.
    OutOfMemory,
    /// The contents do not fit into what they were to be put into.
    DoesNotFit,
    /// A packet does not pass whole.
    Torn,
}

impl From<NoMemory> for Refusal {
    fn from(_: NoMemory) -> Self {
        Self::OutOfMemory
    }
}

/// Where bytes come from.
pub trait Source {
    /// Why it gives none.
    type Error: From<Refusal>;

    /// Bytes that it has.
    fn remaining(&self) -> usize;

    /// Gives its next bytes to `to`, as many as there are up to an error; the error shows if
    /// that is none.
    fn take(&mut self, to: &mut [u8]) -> Result<usize, Self::Error>;
}

/// Where bytes go to.
pub trait Sink {
    /// Why it takes none.
    type Error: From<Refusal>;

    /// Bytes for which it has room.
    fn remaining(&self) -> usize;

    /// Takes bytes, as many as fit up to an error; the error shows if that is none.
    fn put(&mut self, bytes: &[u8]) -> Result<usize, Self::Error>;
}
