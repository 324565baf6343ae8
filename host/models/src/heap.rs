//! A heap that refuses what a test wants refused.

use std::cell::Cell;

use base::{Memory, NoMemory};

/// The heap of this thread.
#[derive(Debug)]
pub struct Heap;

thread_local! {
    /// Requests until one is refused; none is at 0.
    static REFUSED_IN: Cell<usize> = const { Cell::new(0) };
}

impl Heap {
    /// Refuses the `nth` request from now on, and those after it until [`Heap::refuse_none`].
    pub fn refuse_nth(nth: usize) {
        REFUSED_IN.set(nth);
    }

    /// Refuses none any more.
    pub fn refuse_none() {
        REFUSED_IN.set(0);
    }
}

impl Memory for Heap {
    fn reserve<E>(grow: impl FnOnce() -> Result<(), E>) -> Result<(), NoMemory> {
        match REFUSED_IN.get() {
            0 => {}
            1 => return Err(NoMemory),
            left => REFUSED_IN.set(left - 1),
        }
        grow().map_err(|_| NoMemory)
    }
}
