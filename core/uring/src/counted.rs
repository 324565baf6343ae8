//! Timeouts that also end after a number of completions.

use alloc::collections::TryReserveError;
use alloc::vec::Vec;

/// Requests that end when so many completions have been posted.
pub struct Counted<T> {
    waiting: Vec<(u32, T)>,
}

impl<T> Default for Counted<T> {
    fn default() -> Self {
        Self {
            waiting: Vec::new(),
        }
    }
}

impl<T> Counted<T> {
    /// Ends `what` when `count` more than `posted` completions were posted.
    pub fn add(&mut self, posted: u32, count: u32, what: T) -> Result<(), TryReserveError> {
        self.waiting.try_reserve(1)?;
        self.waiting.push((posted.wrapping_add(count), what));
        Ok(())
    }

    /// Whether nobody counts.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Takes out one that has seen enough; the numbers wrap around.
    pub fn take_due(&mut self, posted: u32) -> Option<T> {
        let is_due = |(target, _): &(u32, T)| posted.wrapping_sub(*target) as i32 >= 0;
        let at = self.waiting.iter().position(is_due)?;
        Some(self.waiting.swap_remove(at).1)
    }

    /// Takes out one that is meant: it ends otherwise.
    pub fn forget(&mut self, is_meant: impl Fn(&T) -> bool) -> Option<T> {
        let at = self.waiting.iter().position(|(_, what)| is_meant(what))?;
        Some(self.waiting.swap_remove(at).1)
    }
}
