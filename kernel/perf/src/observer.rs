//! Hearing of threads: what `task` tells.

use alloc::sync::Arc;

use sync::Result;
use task::{Observer, Thread, observe_by};

use super::{sample, watch};

/// Listens to threads; once at boot.
pub fn init() {
    observe_by(&Events);
}

struct Events;

impl Observer for Events {
    fn note_thread(&self, maker: &Thread, new: &Arc<Thread>) -> Result<()> {
        watch::note_thread(maker, new)
    }

    fn forget(&self, thread: &Thread) {
        watch::forget(thread);
    }

    fn note_exit(&self, thread: &Thread) {
        watch::note_exit(thread);
    }

    fn give_samples(&self, thread: &Thread) {
        sample::deliver(thread);
    }
}
