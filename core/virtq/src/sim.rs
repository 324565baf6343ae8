//! The device's side of a queue, over a simulated bus: honest, or lying on purpose.
//!
//! For tests, fuzzers and the simulator. It panics when the *driver* breaks the rules:
//! that is what it is there to find.

use crate::layout::{Addresses, DESC_INDIRECT, DESC_NEXT, DESC_WRITE};
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;
use base::DeviceAddr;
use hal::sim::SimMemory;

/// A descriptor as the device reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptor {
    /// Where the part begins.
    pub addr: u64,
    /// Bytes.
    pub len: u32,
    /// `VIRTQ_DESC_F_*`.
    pub flags: u16,
    /// The next descriptor, if the flags say so.
    pub next: u16,
}

/// A chain that the device has fetched.
pub struct Fetched {
    /// What completes it.
    pub head: u16,
    /// Its parts.
    pub parts: Vec<Descriptor>,
}

impl Fetched {
    /// Bytes that the device may write.
    pub fn writable(&self) -> u32 {
        self.parts
            .iter()
            .filter(|part| part.flags & DESC_WRITE != 0)
            .map(|part| part.len)
            .sum()
    }
}

/// A device with one queue.
pub struct Device {
    memory: SimMemory,
    rings: Addresses,
    size: u16,
    fetched: u16,
    used: u16,
    /// Chains that were fetched and not completed.
    pub pending: VecDeque<Fetched>,
}

impl Device {
    /// A device that has been told where the rings lie.
    pub fn new(memory: &SimMemory, rings: Addresses, size: u16) -> Self {
        let pending = VecDeque::new();
        Self {
            memory: memory.clone(),
            rings,
            size,
            fetched: 0,
            used: 0,
            pending,
        }
    }

    fn read<const N: usize>(&self, addr: u64) -> [u8; N] {
        let mut bytes = [0; N];
        self.memory
            .read(DeviceAddr(addr), &mut bytes)
            .expect("inside of a buffer");
        bytes
    }

    fn word(&self, addr: u64) -> u16 {
        u16::from_le_bytes(self.read(addr))
    }

    fn descriptor(&self, table: u64, index: u16) -> Descriptor {
        let bytes: [u8; 16] = self.read(table + u64::from(index) * 16);
        Descriptor {
            addr: u64::from_le_bytes(bytes[..8].try_into().unwrap()),
            len: u32::from_le_bytes(bytes[8..12].try_into().unwrap()),
            flags: u16::from_le_bytes(bytes[12..14].try_into().unwrap()),
            next: u16::from_le_bytes(bytes[14..].try_into().unwrap()),
        }
    }

    fn chain(&self, table: u64, head: u16) -> Vec<Descriptor> {
        let mut parts = vec![self.descriptor(table, head)];
        while let Some(last) = parts.last().filter(|part| part.flags & DESC_NEXT != 0) {
            assert!(
                parts.len() <= usize::from(self.size),
                "the driver made a loop"
            );
            parts.push(self.descriptor(table, last.next));
        }
        parts
    }

    /// Fetches all that the driver has published; returns how many chains.
    pub fn fetch(&mut self) -> u16 {
        let published = self.word(self.rings.available.0 + 2);
        let count = published.wrapping_sub(self.fetched);
        assert!(
            count <= self.size,
            "more published than there are descriptors"
        );
        for _ in 0..count {
            let slot = u64::from(self.fetched % self.size);
            let head = self.word(self.rings.available.0 + 4 + slot * 2);
            let mut parts = self.chain(self.rings.descriptors.0, head);
            if let [only] = parts[..]
                && only.flags & DESC_INDIRECT != 0
            {
                assert_eq!(only.len % 16, 0);
                parts = self.chain(only.addr, 0);
                assert_eq!(parts.len(), only.len as usize / 16);
            }
            self.pending.push_back(Fetched { head, parts });
            self.fetched = self.fetched.wrapping_add(1);
        }
        count
    }

    /// Stores a completion without publishing it.
    pub fn store_used(&mut self, id: u32, len: u32) {
        let slot = self.rings.used.0 + 4 + u64::from(self.used % self.size) * 8;
        self.memory
            .write(DeviceAddr(slot), &id.to_le_bytes())
            .unwrap();
        self.memory
            .write(DeviceAddr(slot + 4), &len.to_le_bytes())
            .unwrap();
        self.used = self.used.wrapping_add(1);
    }

    /// Claims to have completed up to `index`.
    pub fn set_used_index(&mut self, index: u16) {
        self.memory
            .write(DeviceAddr(self.rings.used.0 + 2), &index.to_le_bytes())
            .unwrap();
    }

    /// Completes a chain; returns whether the driver asked for an interrupt.
    pub fn complete(&mut self, id: u32, len: u32) -> bool {
        self.store_used(id, len);
        self.set_used_index(self.used);
        let event = self.word(self.rings.available.0 + 4 + u64::from(self.size) * 2);
        self.used.wrapping_sub(1) == event
    }

    /// `avail_event`: asks for a doorbell when the available index passes `index`.
    pub fn want_doorbell_after(&self, index: u16) {
        let addr = self.rings.used.0 + 4 + u64::from(self.size) * 8;
        self.memory
            .write(DeviceAddr(addr), &index.to_le_bytes())
            .unwrap();
    }

    /// `VIRTQ_USED_F_NO_NOTIFY`: asks for no doorbells.
    pub fn want_no_doorbells(&self) {
        self.memory
            .write(DeviceAddr(self.rings.used.0), &1u16.to_le_bytes())
            .unwrap();
    }

    /// The available index up to which chains were fetched.
    pub fn fetched(&self) -> u16 {
        self.fetched
    }

    /// Scribbles over any byte of the rings.
    pub fn scribble(&self, rings_bytes: u64, at: u64, value: u8) {
        let addr = DeviceAddr(self.rings.descriptors.0 + at % rings_bytes);
        let _ = self.memory.write(addr, &[value]);
    }
}
