//! The kernel's end of the submission queue.
//!
//! Invariant: `head` is the kernel's own; what the ring shows of it is never read back.

use base::SharedMemory;

use crate::geometry::{Geometry, SQE_BYTES, offset};
use crate::sqe::Sqe;

/// What the program gave next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// Nothing.
    Empty,
    /// An index that is none: it was passed over.
    Dropped,
    /// An entry, as it was when it was copied.
    Entry(Sqe),
}

/// The submission queue.
#[derive(Debug)]
pub struct SubmissionQueue {
    geometry: Geometry,
    head: u32,
    dropped: u32,
}

impl SubmissionQueue {
    /// An empty one.
    pub fn new(geometry: Geometry) -> Self {
        Self::at(geometry, 0)
    }

    /// One that another has taken from before, up to `head`.
    pub fn at(geometry: Geometry, head: u32) -> Self {
        Self {
            geometry,
            head,
            dropped: 0,
        }
    }

    /// Entries that the program has given; never more than there are, whatever its tail says.
    pub fn pending(&self, rings: &impl SharedMemory) -> u32 {
        let given = rings.load(offset::SQ_TAIL).wrapping_sub(self.head);
        given.min(self.geometry.sq_entries())
    }

    /// Takes the next entry. It is copied once: what the program writes later does not count.
    pub fn take(&mut self, rings: &impl SharedMemory, sqes: &impl SharedMemory) -> Next {
        if self.pending(rings) == 0 {
            return Next::Empty;
        }
        let entries = self.geometry.sq_entries();
        let slot = (self.head & (entries - 1)) as usize;
        let index = rings.load(self.geometry.array() + slot * size_of::<u32>());
        self.head = self.head.wrapping_add(1);
        rings.store(offset::SQ_HEAD, self.head);
        if index >= entries {
            self.dropped = self.dropped.wrapping_add(1);
            rings.store(offset::SQ_DROPPED, self.dropped);
            return Next::Dropped;
        }
        let mut bytes = [0; SQE_BYTES];
        sqes.read(index as usize * SQE_BYTES, &mut bytes);
        Next::Entry(Sqe::from_bytes(&bytes))
    }

    /// Gives back the entry that was taken last: there is no memory for it now.
    pub fn put_back(&mut self, rings: &impl SharedMemory) {
        self.head = self.head.wrapping_sub(1);
        rings.store(offset::SQ_HEAD, self.head);
    }
}
