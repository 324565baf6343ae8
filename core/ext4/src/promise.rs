//! Room for bytes that are not on the disk yet.
//!
//! A cache of pages takes bytes long before it knows where they go, and must not find the disk full
//! when it does. So it has room promised for each page that has none yet, and nobody else gets that:
//! who needs blocks for anything else is refused while they are.
//!
//! Promises are made without the volume's lock. Each side says first what it takes and looks then
//! at what the other has taken, so of two that come together at least one sees the other.

use core::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// Blocks of trees and bitmaps that data may need besides, whatever comes.
const OTHERS: u64 = 32;
/// One more for so many blocks of data: a node of a tree has more entries than that, but half of
/// them may be empty.
const DATA_PER_OTHER: u64 = 32;

/// Free blocks of a volume, and how many of them are promised.
#[derive(Debug, Default)]
pub struct Promises {
    free: AtomicU64,
    promised: AtomicU64,
}

impl Promises {
    /// Promises room for so many blocks of data; false if there may not be enough.
    pub fn promise(&self, blocks: u64) -> bool {
        let promised = self.promised.fetch_add(blocks, SeqCst) + blocks;
        let is_there = promised + OTHERS + promised / DATA_PER_OTHER <= self.free.load(SeqCst);
        if !is_there {
            self.release(blocks);
        }
        is_there
    }

    /// So many have their room now, or need none.
    pub fn release(&self, blocks: u64) {
        self.promised.fetch_sub(blocks, SeqCst);
    }

    /// Blocks that are promised.
    pub fn promised(&self) -> u64 {
        self.promised.load(SeqCst)
    }

    /// Free blocks that nobody was promised.
    pub fn unpromised(&self) -> u64 {
        (self.free.load(SeqCst)).saturating_sub(self.promised())
    }

    /// So many are free now; how many of them nobody was promised.
    pub(crate) fn set_free(&self, free: u64) -> Option<u64> {
        self.free.store(free, SeqCst);
        free.checked_sub(self.promised())
    }
}

#[cfg(test)]
mod tests {
    use super::{OTHERS, Promises};

    #[test]
    fn more_than_there_is_room_for_is_not_promised() {
        let promises = Promises::default();
        assert!(!promises.promise(1));
        promises.set_free(OTHERS + 33);
        assert!(promises.promise(32));
        assert!(!promises.promise(1));
        assert_eq!(promises.unpromised(), OTHERS + 1);
        assert_eq!(promises.set_free(OTHERS), Some(0));
        assert_eq!(promises.set_free(31), None);
        promises.release(32);
        assert_eq!(promises.promised(), 0);
    }
}
