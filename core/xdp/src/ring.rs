//! One ring: a producer, a consumer, and entries between them.
//!
//! Both ends are words that only grow and wrap around; an entry's place is the word's low bits.
//!
//! Invariant: `next` is the kernel's own end. The ring shows it and is never asked for it.

use base::SharedMemory;

use crate::descriptor::{DESCRIPTOR_BYTES, Descriptor};

/// Entries of the largest ring.
const ENTRIES_MAX: u32 = 1 << 16;
/// Bytes of an address in the fill and completion rings.
const ADDRESS_BYTES: usize = 8;

/// Where the words of a ring lie, as Linux has them and XDP_MMAP_OFFSETS tells. Each end that
/// somebody writes has a cache line of its own.
pub mod offset {
    /// Behind the last entry; its producer writes.
    pub const PRODUCER: usize = 0;
    /// The next entry to be taken; its consumer writes.
    pub const CONSUMER: usize = 128;
    /// What the kernel says ([`NEED_WAKEUP`](super::NEED_WAKEUP)).
    pub const FLAGS: usize = 196;
    /// The entries.
    pub const ENTRIES: usize = 320;
}

/// The kernel does not look at the ring before a call (XDP_RING_NEED_WAKEUP).
pub const NEED_WAKEUP: u32 = 1;

/// What a ring carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Entry {
    /// Addresses of chunks: fill and completion.
    Address,
    /// Frames in chunks: rx and tx.
    Descriptor,
}

/// A ring's size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Geometry {
    entries: u32,
    entry: Entry,
}

impl Geometry {
    /// A ring of so many entries; `None` if that is no power of two, or too many.
    pub fn check(entries: u32, entry: Entry) -> Option<Self> {
        let is_possible = entries.is_power_of_two() && entries <= ENTRIES_MAX;
        is_possible.then_some(Self { entries, entry })
    }

    /// Bytes of the ring.
    pub fn bytes(&self) -> usize {
        self.at(0) + self.entries as usize * self.entry_bytes()
    }

    fn entry_bytes(&self) -> usize {
        match self.entry {
            Entry::Address => ADDRESS_BYTES,
            Entry::Descriptor => DESCRIPTOR_BYTES,
        }
    }

    /// Where the entry at a position lies, whatever the position.
    fn at(&self, position: u32) -> usize {
        let slot = position & (self.entries - 1);
        offset::ENTRIES + slot as usize * self.entry_bytes()
    }
}

/// The kernel's end of a ring that the program fills.
#[derive(Debug)]
pub struct Consumer {
    geometry: Geometry,
    next: u32,
}

impl Consumer {
    /// Of an empty ring.
    pub fn new(geometry: Geometry) -> Self {
        Self { geometry, next: 0 }
    }

    /// Entries of the ring.
    pub(crate) fn entries(&self) -> u32 {
        self.geometry.entries
    }

    /// Entries that the program has given; never more than there are, whatever its end says.
    pub fn given(&self, ring: &impl SharedMemory) -> u32 {
        let given = ring.load(offset::PRODUCER).wrapping_sub(self.next);
        given.min(self.geometry.entries)
    }

    /// The position of the next entry.
    pub(crate) fn position(&self) -> u32 {
        self.next
    }

    /// The address at the next entry, which is taken.
    pub(crate) fn take_address(&mut self, ring: &impl SharedMemory) -> u64 {
        let mut bytes = [0; ADDRESS_BYTES];
        ring.read(self.geometry.at(self.next), &mut bytes);
        self.advance(1);
        u64::from_ne_bytes(bytes)
    }

    /// The frame `ahead` entries behind the next one, which is not taken.
    pub(crate) fn descriptor(&self, ring: &impl SharedMemory, ahead: u32) -> Descriptor {
        let mut bytes = [0; DESCRIPTOR_BYTES];
        ring.read(self.geometry.at(self.next.wrapping_add(ahead)), &mut bytes);
        Descriptor::from_bytes(bytes)
    }

    pub(crate) fn advance(&mut self, entries: u32) {
        self.next = self.next.wrapping_add(entries);
    }

    /// Shows what was taken.
    pub(crate) fn publish(&self, ring: &impl SharedMemory) {
        ring.store(offset::CONSUMER, self.next);
    }
}

/// The kernel's end of a ring that it fills.
#[derive(Debug)]
pub struct Producer {
    geometry: Geometry,
    next: u32,
}

impl Producer {
    /// Of an empty ring.
    pub fn new(geometry: Geometry) -> Self {
        Self { geometry, next: 0 }
    }

    /// Entries that are in the ring, as the program says; never more than there are places.
    pub fn filled(&self, ring: &impl SharedMemory) -> u32 {
        let filled = self.next.wrapping_sub(ring.load(offset::CONSUMER));
        filled.min(self.geometry.entries)
    }

    /// Entries that have room.
    pub fn room(&self, ring: &impl SharedMemory) -> u32 {
        self.geometry.entries - self.filled(ring)
    }

    pub(crate) fn put_address(&mut self, ring: &impl SharedMemory, address: u64) {
        self.put(ring, &address.to_ne_bytes());
    }

    pub(crate) fn put_descriptor(&mut self, ring: &impl SharedMemory, frame: Descriptor) {
        self.put(ring, &frame.to_bytes());
    }

    fn put(&mut self, ring: &impl SharedMemory, bytes: &[u8]) {
        ring.write(self.geometry.at(self.next), bytes);
        self.next = self.next.wrapping_add(1);
    }

    /// Shows what was put in, after all that was written before.
    pub(crate) fn publish(&self, ring: &impl SharedMemory) {
        ring.store(offset::PRODUCER, self.next);
    }
}
