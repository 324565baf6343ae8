//! When a pair that is polled masks its message.
//!
//! # Problem
//! A register is an exit to a hypervisor, and so is an interrupt that finds its frames taken already. A server that
//! waits for each request would write two registers around each of its waits to save none.
//!
//! # Idea
//! A pair stays unmasked until its frames show that interrupts would disturb: with the second frame that is found
//! without a wait in between, be it by the same look, it masks. Who was disturbed so masks at once after the next wait, until
//! waits come between all of its frames again.
//!
//! While it is unmasked, waiting takes no register. Only causes that came up while the message was masked have to be
//! cleared before it is unmasked.

/// Frames between two waits from which on interrupts disturb.
const CROWDED: u8 = 2;

/// What a pair knows of its message. Masked at first.
#[derive(Default)]
pub(crate) struct Silence {
    is_unmasked: bool,
    /// Frames found since it was armed, [`CROWDED`] at most.
    found: u8,
    /// Between the last two waits there were that many.
    was_crowded: bool,
}

impl Silence {
    pub(crate) fn is_masked(&self) -> bool {
        !self.is_unmasked
    }

    pub(crate) fn note_masked(&mut self) {
        self.is_unmasked = false;
    }

    /// It is armed.
    pub(crate) fn note_unmasked(&mut self) {
        self.was_crowded = self.found == CROWDED;
        self.found = 0;
        self.is_unmasked = true;
    }

    /// Whether to mask at the end of a wait.
    pub(crate) fn pays(&self) -> bool {
        self.is_unmasked && self.was_crowded
    }

    /// Whether to mask after a receive that found `count` frames.
    #[inline]
    pub(crate) fn is_due(&mut self, count: usize) -> bool {
        self.found = count.saturating_add(self.found.into()).min(CROWDED.into()) as u8;
        self.is_unmasked && self.found == CROWDED
    }
}
