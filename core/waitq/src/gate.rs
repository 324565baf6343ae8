//! The lock whose waiters sleep, without what it guards.
//!
//! One flag says whether somebody has it. Both who takes it and who gives it back exchange the
//! flag: who comes second sees what the first did before, a waiter's place in the queue among it.

use base::lock::{Family, Flag};

use crate::{Host, Parking, WaitQueue};

/// Lets one thread pass at a time.
pub struct Gate<H: Host> {
    is_taken: <H::Family as Family>::Flag,
    waiters: WaitQueue<H>,
}

impl<H: Host> Default for Gate<H> {
    fn default() -> Self {
        Self::new(Default::default(), WaitQueue::default())
    }
}

impl<H: Host> Gate<H> {
    /// From false and nobody.
    pub const fn new(is_taken: <H::Family as Family>::Flag, waiters: WaitQueue<H>) -> Self {
        Self { is_taken, waiters }
    }

    /// Passes if nobody is inside.
    #[inline]
    pub fn try_enter(&self) -> bool {
        !self.is_taken.swap(true)
    }

    /// Passes once nobody is inside. `park` blocks the running thread, and does not give up.
    #[inline]
    pub fn enter(&self, park: &mut dyn FnMut(Parking)) {
        if !self.try_enter() {
            self.enter_slow(park);
        }
    }

    #[cold]
    fn enter_slow(&self, park: &mut dyn FnMut(Parking)) {
        let mut park = |parking| {
            park(parking);
            Ok::<(), core::convert::Infallible>(())
        };
        let mut ready = || self.try_enter().then_some(());
        match self.waiters.wait(&mut park, &mut ready) {
            Ok(()) => {}
            Err(never) => match never {},
        }
    }

    /// Lets the next one pass.
    #[inline]
    pub fn leave(&self) {
        self.is_taken.swap(false);
        self.waiters.wake_one();
    }
}
