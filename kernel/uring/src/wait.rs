//! Waiting for completions.

use sync::{Error, Result, Wait};
use task::Thread;

use crate::ring::Ring;
use crate::submitter::Submitter;

impl Ring {
    /// Waits until `least` completions are in the ring, doing meanwhile what can be done.
    ///
    /// Errors: `Busy` if some find no room in the ring; those of `how`.
    pub fn wait(
        &self,
        submitter: &Submitter,
        thread: &Thread,
        least: u32,
        how: Wait,
    ) -> Result<()> {
        let least = least.min(self.setup.geometry.cq_entries());
        loop {
            submitter.work(thread);
            let (ready, is_flushed) = {
                let mut state = self.state.lock();
                let is_flushed = state.completions.flush(&*self.rings);
                (state.completions.ready(&*self.rings), is_flushed)
            };
            if ready >= least {
                return Ok(());
            }
            if !is_flushed {
                return Err(Error::Busy);
            }
            let has_news = || {
                let state = self.state.lock();
                let is_enough = state.completions.ready(&*self.rings) >= least;
                let has_news = is_enough || state.completions.has_overflow();
                drop(state);
                (has_news || submitter.has_work()).then_some(())
            };
            self.note_waiter(least);
            let waited = self.enough.wait(how, has_news);
            self.state.lock().waiters -= 1;
            waited?;
        }
    }

    /// This thread waits for `least` completions.
    fn note_waiter(&self, least: u32) {
        let mut state = self.state.lock();
        state.wanted = match state.waiters {
            0 => least,
            _ => state.wanted.min(least),
        };
        state.waiters += 1;
    }
}
