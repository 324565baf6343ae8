//! The program's ends of the rings: what it fills (fill, tx) and what it takes from (rx,
//! completion).
//!
//! The words are those of the kernel's ends (`ring`), with the parts exchanged: whoever fills a ring
//! here finds a [`Consumer`] there. The kernel is trusted with the contents; that there are never
//! more entries than places is checked all the same, for it costs nothing.
//!
//! The other end is only looked at when what was seen of it last is used up, and what was done is
//! shown once for a whole batch ([`submit`](ProgramProducer::submit),
//! [`release`](ProgramConsumer::release)): two cache lines that the kernel writes are touched once a
//! batch.

use base::SharedMemory;

use crate::descriptor::Descriptor;
use crate::ring::{Consumer, Geometry, NEED_WAKEUP, Producer, offset};

/// The program's end of a ring that it fills.
#[derive(Debug)]
pub struct ProgramProducer<M> {
    ring: M,
    end: Producer,
    /// Places that were free when the kernel's end was last looked at, less those used since.
    room: u32,
}

impl<M: SharedMemory> ProgramProducer<M> {
    /// Of an empty ring in `ring`.
    pub fn new(ring: M, geometry: Geometry) -> Self {
        Self {
            ring,
            end: Producer::new(geometry),
            room: 0,
        }
    }

    /// The ring's memory.
    pub fn memory(&self) -> &M {
        &self.ring
    }

    /// Whether there is a place for one more entry.
    #[inline]
    pub fn has_room(&mut self) -> bool {
        if self.room == 0 {
            self.room = self.end.room(&self.ring);
        }
        self.room != 0
    }

    /// Puts an address in; false without a place.
    #[inline]
    pub fn put_address(&mut self, address: u64) -> bool {
        let has_room = self.has_room();
        if has_room {
            self.room -= 1;
            self.end.put_address(&self.ring, address);
        }
        has_room
    }

    /// Puts a frame in; false without a place.
    #[inline]
    pub fn put_frame(&mut self, frame: Descriptor) -> bool {
        let has_room = self.has_room();
        if has_room {
            self.room -= 1;
            self.end.put_descriptor(&self.ring, frame);
        }
        has_room
    }

    /// Shows the kernel what was put in.
    #[inline]
    pub fn submit(&self) {
        self.end.publish(&self.ring);
    }

    /// Whether the kernel looks at the ring only when it is called.
    #[inline]
    pub fn needs_wakeup(&self) -> bool {
        self.ring.load(offset::FLAGS) & NEED_WAKEUP != 0
    }
}

/// The program's end of a ring that it takes from.
#[derive(Debug)]
pub struct ProgramConsumer<M> {
    ring: M,
    end: Consumer,
    /// Entries that were there when the kernel's end was last looked at, less those taken since.
    waiting: u32,
}

impl<M: SharedMemory> ProgramConsumer<M> {
    /// Of an empty ring in `ring`.
    pub fn new(ring: M, geometry: Geometry) -> Self {
        Self {
            ring,
            end: Consumer::new(geometry),
            waiting: 0,
        }
    }

    /// Whether there is one to take.
    #[inline]
    pub fn has_one(&mut self) -> bool {
        if self.waiting == 0 {
            self.waiting = self.end.given(&self.ring);
        }
        self.waiting != 0
    }

    /// Takes the next address.
    #[inline]
    pub fn take_address(&mut self) -> Option<u64> {
        self.has_one().then(|| {
            self.waiting -= 1;
            self.end.take_address(&self.ring)
        })
    }

    /// Takes the next frame.
    #[inline]
    pub fn take_frame(&mut self) -> Option<Descriptor> {
        self.has_one().then(|| {
            self.waiting -= 1;
            let frame = self.end.descriptor(&self.ring, 0);
            self.end.advance(1);
            frame
        })
    }

    /// Gives the kernel the places of what was taken.
    #[inline]
    pub fn release(&self) {
        self.end.publish(&self.ring);
    }
}
