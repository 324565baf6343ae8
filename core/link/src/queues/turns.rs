//! Whose turn it is to take a connection that a peer opens.
//!
//! The queue that has had the fewest turns; of several the one whose hash with the flow is the highest. Only differences are
//! kept, and none is when queues come, go or change their mind: who begins late is not given all that others had before.

use core::cmp::Reverse;

use super::{QUEUES_MAX, members_of};

/// How many turns each queue has had more than the one with the fewest.
#[derive(Default, Debug)]
pub(super) struct Turns([u32; QUEUES_MAX as usize]);

impl Turns {
    fn of(&self, queue: u16) -> u32 {
        self.0.get(usize::from(queue)).copied().unwrap_or(0)
    }

    /// The next one of `takers`.
    pub fn next(&self, takers: u16, hash: impl Fn(u16) -> u64) -> Option<u16> {
        members_of(takers).min_by_key(|queue| (self.of(*queue), Reverse(hash(*queue))))
    }

    /// It has had its turn.
    pub fn note(&mut self, takers: u16, queue: u16) {
        if let Some(turns) = self.0.get_mut(usize::from(queue)) {
            *turns = turns.saturating_add(1);
        }
        let fewest = members_of(takers).map(|queue| self.of(queue)).min();
        for turns in &mut self.0 {
            *turns = turns.saturating_sub(fewest.unwrap_or(0));
        }
    }
}
