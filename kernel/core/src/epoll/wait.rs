//! Waiting for a report, and collecting reports.

use super::{Epoll, Event};
use crate::error::Result;
use crate::sync::Wait;

/// Reports collected at once, on the caller's stack.
pub const BATCH_EVENTS: usize = 32;

impl Epoll {
    /// Fills `events` from the front with what is ready now; returns how many there are.
    ///
    /// Looks at no entry twice: a level-triggered one that goes back to the end of the
    /// list is for the next call.
    pub fn collect(&self, events: &mut [Event]) -> usize {
        let mut filled = 0;
        let mut to_look_at = self.ready.lock().len();
        while to_look_at != 0
            && let Some(place) = events.get_mut(filled)
            && let Some(entry) = self.pop()
        {
            to_look_at -= 1;
            let Some(report) = entry.report() else {
                continue;
            };
            *place = report.event;
            filled += 1;
            if entry.stays_queued(&report) && entry.requeue() {
                self.push(entry);
            }
        }
        if filled != 0 && self.may_be_ready() {
            self.waiters.wake_one();
        }
        filled
    }

    /// Waits until something may be ready, by the rules of `how`.
    pub fn wait(&self, how: Wait) -> Result<()> {
        self.waiters.wait(how, || self.may_be_ready().then_some(()))
    }

    /// Whether an entry is ready, for who watches this epoll; drops those that are not.
    pub(super) fn has_ready(&self) -> bool {
        let to_look_at = self.ready.lock().len();
        for _ in 0..to_look_at {
            let Some(entry) = self.pop() else { break };
            if entry.report().is_some() {
                if entry.requeue() {
                    self.push(entry);
                }
                return true;
            }
        }
        false
    }
}
