//! What is remembered of a file's mode, so that not every write has to ask for it (`vfs::set_ids`).

use core::sync::atomic::{AtomicU64, Ordering};

use vfs::set_ids::SET_IDS;

/// Whether a mode had no set-user-ID or set-group-ID bits when it was last seen: the lowest bit. Above it is how often the
/// mode has changed, as an answer that was under way meanwhile says nothing of the new one.
#[derive(Default)]
pub(crate) struct SeenMode(AtomicU64);

const IS_ORDINARY: u64 = 1;

impl SeenMode {
    /// Which changes who asks for the mode now will have seen; for [`SeenMode::note`].
    pub(crate) fn changes(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }

    /// The mode was found, asked for after `before`.
    pub(crate) fn note(&self, before: u64, mode: u32) {
        if mode & SET_IDS != 0 {
            self.0.fetch_and(!IS_ORDINARY, Ordering::AcqRel);
            return;
        }
        // Where it has changed meanwhile, nothing is known.
        let (seen, failed) = (Ordering::AcqRel, Ordering::Relaxed);
        let _ = (self.0).compare_exchange(before, before | IS_ORDINARY, seen, failed);
    }

    /// The mode has changed.
    pub(crate) fn forget(&self) {
        let next = |seen: u64| Some((seen | IS_ORDINARY).wrapping_add(1));
        let _ = self
            .0
            .fetch_update(Ordering::AcqRel, Ordering::Relaxed, next);
    }

    /// False only if it has no such bits.
    pub(crate) fn may_set_ids(&self) -> bool {
        self.0.load(Ordering::Acquire) & IS_ORDINARY == 0
    }
}
