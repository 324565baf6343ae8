//! Bugs that tests plant one at a time, to see that they would be found.
//!
//! Outside of the crate's own tests [`planted`] is constantly false, and the compiler leaves nothing
//! of it.

/// What can be done wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Bug {
    /// The sum of an entry's bytes is not looked at: a torn tail is an entry.
    ChecksumUnchecked,
    /// The sum of an entry's header is not looked at.
    HeaderUnchecked,
    /// The sum of an anchor is not looked at.
    AnchorUnchecked,
    /// Entries of another log are taken.
    IdUnbound,
    /// Entries that belong elsewhere are taken.
    PositionUnbound,
    /// Entries of an opening that was cut off are taken.
    EpochUnbound,
    /// The epoch does not grow when a log is opened.
    EpochKept,
    /// An entry is called durable when the device has accepted it.
    DurableAtAccept,
    /// A flush is taken to cover what was accepted after it was sent.
    FlushCoversLater,
    /// Space is used again as soon as it is trimmed.
    ReusedEarly,
    /// Space is used again when the anchor is accepted.
    AnchorNotFlushed,
    /// The anchor is overwritten in its place.
    AnchorInPlace,
    /// The mark is put where the log ends, durable or not.
    MarkAhead,
    /// Opening flushes nothing.
    OpenNotFlushed,
    /// A hole in what was durable is taken for the end.
    LossIgnored,
    /// After a write that failed it goes on.
    FailureIgnored,
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
