//! What is to happen at its time, on one CPU: the earliest first, equals in the order in which
//! they came.

use alloc::collections::BTreeMap;

use base::Instant;

/// Names a deadline until it is called or cancelled.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct DeadlineId {
    at: Instant,
    serial: u64,
}

/// Deadlines with what is to happen.
pub struct Deadlines<T> {
    pending: BTreeMap<DeadlineId, T>,
    serial: u64,
}

impl<T> Deadlines<T> {
    /// None.
    pub const fn new() -> Self {
        Self {
            pending: BTreeMap::new(),
            serial: 0,
        }
    }

    /// Adds one.
    pub fn add(&mut self, at: Instant, target: T) -> DeadlineId {
        self.serial += 1;
        let id = DeadlineId {
            at,
            serial: self.serial,
        };
        self.pending.insert(id, target);
        id
    }

    /// Forgets one; `None` if it was taken out already.
    pub fn cancel(&mut self, id: DeadlineId) -> Option<T> {
        self.pending.remove(&id)
    }

    /// When the first one is due; `NEVER` if there is none.
    pub fn first(&self) -> Instant {
        let first = self.pending.first_key_value();
        first.map_or(Instant::NEVER, |(id, _)| id.at)
    }

    /// Takes out the first one if it is due at `now`.
    pub fn pop_due(&mut self, now: Instant) -> Option<T> {
        let first = self.pending.first_entry()?;
        (first.key().at <= now).then(|| first.remove())
    }
}

impl<T> Default for Deadlines<T> {
    fn default() -> Self {
        Self::new()
    }
}
