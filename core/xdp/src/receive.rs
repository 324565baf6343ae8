//! From a link to the program: the fill ring says where frames go, the rx ring where they are.

use base::SharedMemory;

use crate::descriptor::Descriptor;
use crate::ring::{Consumer, Geometry, NEED_WAKEUP, Producer, offset};
use crate::umem::Umem;

probes::counters! {
    /// Why a frame did not reach the program.
    pub enum Dropped => Drops {
        /// It is longer than a chunk has room for.
        TooLong = "too_long",
        /// The program has not taken what is in the rx ring.
        RingFull = "ring_full",
        /// The program has given no chunk.
        NoChunk = "no_chunk",
        /// The program has given an address that is none.
        InvalidAddress = "invalid_address",
    }
}

/// The kernel's ends of the fill and rx rings.
#[derive(Debug)]
pub struct Receiver {
    umem: Umem,
    fill: Consumer,
    ring: Producer,
    /// The program was told to call when it has given chunks.
    is_starved: bool,
    placed: u64,
    drops: Drops,
}

impl Receiver {
    /// Both rings are empty.
    pub fn new(umem: Umem, fill: Geometry, ring: Geometry) -> Self {
        Self {
            umem,
            fill: Consumer::new(fill),
            ring: Producer::new(ring),
            is_starved: false,
            placed: 0,
            drops: Drops::default(),
        }
    }

    /// Finds a place for a frame of `len` bytes: the caller copies it to that address before it
    /// [publishes](Self::publish) the batch.
    pub fn place(
        &mut self,
        fill: &impl SharedMemory,
        ring: &impl SharedMemory,
        len: usize,
    ) -> Result<u64, Dropped> {
        let found = self.find(fill, ring, len);
        match found {
            Ok(_) => self.placed += 1,
            Err(reason) => self.drops.count(reason),
        }
        found
    }

    fn find(
        &mut self,
        fill: &impl SharedMemory,
        ring: &impl SharedMemory,
        len: usize,
    ) -> Result<u64, Dropped> {
        if len > self.umem.frame_bytes_max() {
            return Err(Dropped::TooLong);
        }
        if self.ring.room(ring) == 0 {
            return Err(Dropped::RingFull);
        }
        if self.fill.given(fill) == 0 {
            self.starve(fill, true);
            return Err(Dropped::NoChunk);
        }
        self.starve(fill, false);
        let address = self.fill.take_address(fill);
        let address = self.umem.frame_at(address);
        let address = address.ok_or(Dropped::InvalidAddress)?;
        let frame = Descriptor {
            address,
            len: len as u32,
            options: 0,
        };
        self.ring.put_descriptor(ring, frame);
        Ok(address)
    }

    /// Shows the program the frames that were placed, and the chunks that were taken.
    pub fn publish(&mut self, fill: &impl SharedMemory, ring: &impl SharedMemory) {
        self.fill.publish(fill);
        self.ring.publish(ring);
    }

    /// Whether frames wait in the rx ring.
    pub fn is_readable(&self, ring: &impl SharedMemory) -> bool {
        self.ring.filled(ring) != 0
    }

    /// The program calls because of [`NEED_WAKEUP`].
    pub fn wake(&mut self, fill: &impl SharedMemory) {
        if self.fill.given(fill) != 0 {
            self.starve(fill, false);
        }
    }

    /// Says in the fill ring whether the program is to call.
    fn starve(&mut self, fill: &impl SharedMemory, is_starved: bool) {
        if self.is_starved != is_starved {
            self.is_starved = is_starved;
            fill.store(offset::FLAGS, if is_starved { NEED_WAKEUP } else { 0 });
        }
    }

    /// Entries of the rx and fill rings that wait for their other ends.
    pub fn filled(&self, fill: &impl SharedMemory, ring: &impl SharedMemory) -> (u32, u32) {
        (self.ring.filled(ring), self.fill.given(fill))
    }

    /// How many frames had a place.
    pub fn placed(&self) -> u64 {
        self.placed
    }

    /// How many frames were dropped for a reason.
    pub fn dropped(&self, reason: Dropped) -> u64 {
        self.drops.get(reason)
    }
}
