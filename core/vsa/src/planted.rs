//! Bugs that tests plant one at a time, to see that they would be found.
//!
//! Outside of the crate's own tests [`planted`] is constantly false, and the compiler leaves nothing
//! of it.

/// What can be done wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Bug {
    /// A copy's checksums are not looked at.
    ChecksumUnchecked,
    /// The copy that is valid is overwritten first.
    HeaderInPlace,
    /// Nothing is flushed before an operation ends.
    FlushSkipped,
    /// The copy with the lower generation is taken.
    OlderTaken,
    /// The second copy is not written.
    NoSecondCopy,
    /// A copy's own number is not compared.
    CopyUnbound,
    /// Blocks are handed out as they were left.
    NotCleaned,
    /// A failed change stays in memory.
    FailedChangeKept,
}

#[cfg(not(test))]
pub(crate) const fn planted(_: Bug) -> bool {
    false
}

#[cfg(test)]
pub(crate) use switch::{planted, with};

#[cfg(test)]
mod switch {
    use super::Bug;
    use std::cell::Cell;

    std::thread_local! {
        static PLANTED: Cell<Option<Bug>> = const { Cell::new(None) };
    }

    pub(crate) fn planted(bug: Bug) -> bool {
        PLANTED.get() == Some(bug)
    }

    /// Runs `test` with one bug planted.
    pub(crate) fn with<T>(bug: Bug, test: impl FnOnce() -> T) -> T {
        PLANTED.set(Some(bug));
        let result = test();
        PLANTED.set(None);
        result
    }
}
