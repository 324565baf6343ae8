//! Bytes that splice is about to move, which nobody else takes meanwhile.
//!
//! Splice looks at bytes, gives them to their target, which may let it wait, and drops them
//! once they are there. Another reader must not take the same bytes in between: to it a held
//! pipe is empty, but has not ended, for what the target refuses stays.

use core::sync::atomic::Ordering;

use super::{Pipe, PipeEnd};
use crate::error::Result;
use crate::poll::Events;
use crate::socket::Blocking;

/// The next bytes of a pipe are nobody else's until this is dropped.
pub(in crate::ipc) struct Hold<'a>(&'a Pipe);

impl PipeEnd {
    /// Waits until there are bytes that nobody holds, or none will come, and holds them.
    pub(in crate::ipc) fn hold(&self, blocking: Blocking) -> Result<Hold<'_>> {
        loop {
            self.wait_for_bytes(0, blocking)?;
            if self.pipe.try_hold() {
                return Ok(Hold(&self.pipe));
            }
        }
    }
}

impl Hold<'_> {
    /// Drops the next `count` bytes.
    pub(in crate::ipc) fn skip(&self, count: usize) {
        let mut contents = self.0.contents.lock();
        let room_before = self.0.room();
        contents.skip(count);
        self.0.publish(&contents);
        drop(contents);
        self.0.tell_writers(room_before);
    }
}

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        let contents = self.0.contents.lock();
        self.0.is_held.store(false, Ordering::SeqCst);
        self.0.publish(&contents);
        drop(contents);
        if self.0.has_come(0) {
            self.0.pollee.notify(Events::READABLE);
        }
    }
}

impl Pipe {
    /// Whether somebody holds the bytes; changed with the contents locked only.
    pub(super) fn is_held(&self) -> bool {
        self.is_held.load(Ordering::SeqCst)
    }

    /// Whether there are more than `skip` bytes for a reader, or none will come.
    pub(super) fn has_come(&self, skip: usize) -> bool {
        self.len() > skip || !self.has_writers() && !self.is_held()
    }

    /// Fails if another was faster: it holds the bytes, or has read them.
    fn try_hold(&self) -> bool {
        let contents = self.contents.lock();
        if self.is_held() || contents.len() == 0 && self.has_writers() {
            return false;
        }
        self.is_held.store(true, Ordering::SeqCst);
        self.publish(&contents);
        true
    }
}
