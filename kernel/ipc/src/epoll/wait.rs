//! Waiting for a report, and collecting reports.

use core::sync::atomic::Ordering;

use sched::resched_point;
use sync::{Result, Wait};

use super::{Epoll, Event};

impl Epoll {
    /// Gives what is ready now, at most `limit` reports, to `give`, which may block;
    /// returns how many there were.
    ///
    /// Looks at no entry twice: a level-triggered one that goes back to the end of the
    /// list is for the next call.
    pub fn collect(
        &self,
        limit: usize,
        mut give: impl FnMut(Event) -> Result<()>,
    ) -> Result<usize> {
        let mut given = 0;
        let mut to_look_at = self.ready_count.load(Ordering::SeqCst);
        while to_look_at != 0
            && given < limit
            && let Some(entry) = self.pop()
        {
            to_look_at -= 1;
            resched_point();
            let Some(report) = entry.report() else {
                continue;
            };
            if report.stays_queued && entry.requeue() {
                self.push(entry);
            }
            give(report.event)?;
            given += 1;
        }
        if given != 0 && self.may_be_ready() {
            self.waiters.wake_one();
        }
        Ok(given)
    }

    /// Waits until something may be ready, by the rules of `how`.
    pub fn wait(&self, how: Wait) -> Result<()> {
        self.waiters.wait(how, || self.may_be_ready().then_some(()))
    }

    /// Whether an entry is ready, for who watches this epoll; drops those that are not.
    pub(super) fn has_ready(&self) -> bool {
        for _ in 0..self.ready_count.load(Ordering::SeqCst) {
            let Some(entry) = self.pop() else { break };
            if entry.is_ready() {
                if entry.requeue() {
                    self.push(entry);
                }
                return true;
            }
        }
        false
    }
}
