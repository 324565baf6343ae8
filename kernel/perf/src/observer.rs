//! Hearing of threads: what `task` tells.

use alloc::sync::Arc;

use sync::Result;
use task::{Observer, Thread, observe_by};

use crate::{sample, threads};

/// Listens to threads; once at boot.
pub fn init() {
    observe_by(&Events);
}

struct Events;

impl Observer for Events {
    fn note_thread(&self, maker: &Thread, new: &Arc<Thread>) -> Result<()> {
        threads::note_thread(maker, new)
    }

    fn forget(&self, thread: &Thread) {
        threads::forget(thread);
    }

    fn note_exit(&self, thread: &Thread) {
        threads::note_exit(thread);
    }

    fn give_samples(&self, thread: &Thread) {
        sample::deliver(thread);
    }
}
