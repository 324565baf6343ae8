//! Collecting reports.

use alloc::sync::Arc;

use crate::entry::{Entry, Report};
use crate::host::{Host, Waiters};
use crate::{Event, Set};

/// Looks between two chances for others to run.
const LOOKS_AT_ONCE: usize = 16;

impl<H: Host> Set<H> {
    /// Gives what is ready now, at most `limit` reports, to `give`, which may block;
    /// returns how many there were.
    ///
    /// Looks at no entry twice: a level-triggered one that goes back to the end of the
    /// list is for the next call.
    pub fn collect<E>(
        &self,
        limit: usize,
        mut give: impl FnMut(Event) -> Result<(), E>,
    ) -> Result<usize, E> {
        let mut given = 0;
        let mut to_look_at = self.ready.len();
        while to_look_at != 0
            && given < limit
            && let Some(entry) = self.ready.pop()
        {
            to_look_at -= 1;
            if to_look_at.is_multiple_of(LOOKS_AT_ONCE) {
                H::resched_point();
            }
            let Some(report) = entry.report() else {
                continue;
            };
            if report.stays_queued() && entry.mark() {
                self.ready.push(entry.clone());
            }
            if let Err(error) = give(report.event) {
                self.put_back(entry, &report);
                return Err(error);
            }
            given += 1;
        }
        if given != 0 && self.may_be_ready() {
            self.waiters.wake_one();
        }
        Ok(given)
    }

    /// A report could not be given: it is for the next who asks.
    fn put_back(&self, entry: Arc<Entry<H>>, report: &Report) {
        entry.take_back(report);
        if entry.mark() {
            self.ready.push(entry);
        }
        self.waiters.wake_one();
    }

    /// Whether it is worth while to collect.
    pub fn may_be_ready(&self) -> bool {
        self.ready.len() != 0
    }

    /// Whether an entry is ready, for who watches this set; drops those that are not. One that is stays on the list
    /// meanwhile: of several who look at once none must find it empty, for nobody would wake who then sleeps.
    pub fn has_ready(&self) -> bool {
        for _ in 0..self.ready.len() {
            let Some(entry) = self.ready.first() else {
                break;
            };
            if entry.is_due() {
                return true;
            }
            if self.ready.take_first(&entry) && entry.is_ready() {
                // It came to be so between the two looks, and whoever made it so found it on the list.
                if entry.mark() {
                    self.queue(entry);
                }
                return true;
            }
        }
        false
    }
}
