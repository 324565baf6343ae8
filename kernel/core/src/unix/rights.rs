//! Descriptors under way in messages (SCM_RIGHTS).
//!
//! Sockets sent through each other may form cycles that nobody can reach any more. There
//! is no collector for those: all descriptors under way together are bounded, so a
//! program can waste a bounded number of them and no more.
//!
//! Dropping a message may drop a socket that holds further messages, and so on. They are
//! dropped one after the other from a list, not by recursion, which would use up the
//! stack.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicUsize, Ordering};

use mach::sync::Spin;

use crate::error::{Error, Result};
use crate::file::OpenFile;

/// Descriptors under way at a time, of all programs.
const IN_FLIGHT_MAX: usize = 8192;

static IN_FLIGHT: AtomicUsize = AtomicUsize::new(0);

/// Openings that a message carries.
pub(super) struct Rights(Vec<Arc<OpenFile>>);

impl Rights {
    /// Counts `files` as under way; [`Error::TooManyReferences`] if there are too many.
    pub(super) fn new(files: Vec<Arc<OpenFile>>) -> Result<Self> {
        let count = files.len();
        let before = IN_FLIGHT.fetch_add(count, Ordering::Relaxed);
        let rights = Self(files);
        if before + count > IN_FLIGHT_MAX {
            Err(Error::TooManyReferences)
        } else {
            Ok(rights)
        }
    }

    /// For the receiver: they are under way no longer.
    pub(super) fn open(mut self) -> Vec<Arc<OpenFile>> {
        self.release()
    }

    /// For a receiver that only looks.
    pub(super) fn peek(&self) -> Vec<Arc<OpenFile>> {
        self.0.clone()
    }

    fn release(&mut self) -> Vec<Arc<OpenFile>> {
        IN_FLIGHT.fetch_sub(self.0.len(), Ordering::Relaxed);
        core::mem::take(&mut self.0)
    }
}

impl Drop for Rights {
    fn drop(&mut self) {
        let files = self.release();
        if !files.is_empty() {
            bury(files);
        }
    }
}

/// What waits to be dropped, and whether somebody is at it.
struct Graveyard {
    files: Vec<Arc<OpenFile>>,
    is_tended: bool,
}

static GRAVEYARD: Spin<Graveyard> = Spin::new(Graveyard {
    files: Vec::new(),
    is_tended: false,
});

/// Drops `files`, or leaves that to the caller further out who is dropping already.
fn bury(mut files: Vec<Arc<OpenFile>>) {
    {
        let mut graveyard = GRAVEYARD.lock();
        graveyard.files.append(&mut files);
        if graveyard.is_tended {
            return;
        }
        graveyard.is_tended = true;
    }
    while let Some(file) = next() {
        drop(file);
    }
}

fn next() -> Option<Arc<OpenFile>> {
    let mut graveyard = GRAVEYARD.lock();
    let file = graveyard.files.pop();
    graveyard.is_tended = file.is_some();
    file
}
