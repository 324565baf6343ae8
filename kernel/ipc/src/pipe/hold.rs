//! Bytes that splice is about to move: `core/pipe/src/hold.rs`.

use super::{Pipe, PipeEnd};
use sync::Result;
use vfs::socket::Blocking;

/// The next bytes of a pipe are nobody else's until this is dropped.
pub(crate) struct Hold<'a>(&'a Pipe);

impl PipeEnd {
    /// Waits until there are bytes that nobody holds, or none will come, and holds them.
    pub(crate) fn hold(&self, blocking: Blocking) -> Result<Hold<'_>> {
        loop {
            self.wait_for_bytes(0, blocking)?;
            if self.pipe.flow.hold() {
                return Ok(Hold(&self.pipe));
            }
        }
    }
}

impl Hold<'_> {
    /// Drops the next `count` bytes.
    pub(crate) fn skip(&self, count: usize) {
        self.0.tell(self.0.flow.skip(count));
    }
}

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        self.0.tell(self.0.flow.release());
    }
}
