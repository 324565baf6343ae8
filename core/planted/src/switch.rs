//! The bug of this thread.

use core::cell::Cell;

std::thread_local! {
    static BUG: Cell<&'static str> = const { Cell::new("") };
    static REACHED: Cell<u64> = const { Cell::new(0) };
}

/// Whether this bug is planted in this thread.
pub fn is(bug: &str) -> bool {
    let is_planted = BUG.get() == bug;
    REACHED.set(REACHED.get() + u64::from(is_planted));
    is_planted
}

/// A bug that stays planted in this thread for as long as this lives.
#[derive(Debug)]
pub struct Planted(());

impl Planted {
    /// Plants it; there is one at a time.
    pub fn new(bug: &'static str) -> Self {
        BUG.set(bug);
        REACHED.set(0);
        Self(())
    }

    /// How often something came by its place.
    pub fn reached(&self) -> u64 {
        REACHED.get()
    }
}

impl Drop for Planted {
    fn drop(&mut self) {
        BUG.set("");
    }
}
