//! Whether there are packet sockets at all, in any stack: for who would have to find the stack first.

use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use super::mirror;

/// Of all stacks: who asks does not know which one it is for.
static SOCKETS: AtomicUsize = AtomicUsize::new(0);

/// A packet socket's part of it.
pub(super) struct Watching(());

impl Watching {
    /// There is one more.
    pub fn begin() -> Self {
        SOCKETS.fetch_add(1, Relaxed);
        mirror::tell();
        Self(())
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        SOCKETS.fetch_sub(1, Relaxed);
        mirror::tell();
    }
}

/// Whether somebody may want to see frames.
#[inline]
pub(crate) fn is_watched() -> bool {
    SOCKETS.load(Relaxed) != 0
}
