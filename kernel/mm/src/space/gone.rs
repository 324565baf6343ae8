//! What was mapped, once it is unmapped.
//!
//! An object that nobody maps any more may be expensive to drop, or block: a file that is closed brings its pages down,
//! for which mappings of them change. So it is dropped without the space's lock, when nothing is under change, and in
//! the pieces in which it was unmapped, as others want the CPU in between.

use alloc::vec::Vec;

use mach::mem::fallible::TryGrow;
use sched::resched_point;
use sync::Result;
use vma::Removed;

use super::Object;

/// Objects that areas had, by the pieces in which these were removed.
#[derive(Default)]
pub(super) struct Gone {
    /// Most unmappings have no more.
    first: Vec<Object>,
    others: Vec<Vec<Object>>,
}

impl Gone {
    /// Room for what one more piece had.
    pub(super) fn make_room(&mut self) -> Result<()> {
        match self.first.is_empty() {
            true => Ok(()),
            false => Ok(self.others.make_room(1)?),
        }
    }

    /// Takes what a piece had; there is room for it.
    pub(super) fn take(&mut self, removed: Removed<Object>) {
        match self.first.is_empty() {
            true => self.first = removed.objects,
            false if removed.objects.is_empty() => {}
            false => self.others.push(removed.objects),
        }
    }
}

impl Drop for Gone {
    fn drop(&mut self) {
        self.first.clear();
        for piece in self.others.drain(..) {
            resched_point();
            drop(piece);
        }
    }
}
