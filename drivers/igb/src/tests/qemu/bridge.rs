//! Memory on both sides: the driver's lies in this process, the card's in QEMU, at the same
//! addresses. What one side hands to the other is copied when it is handed over: a tail
//! gives descriptors and bytes to the card, a head that moved gives them back.

extern crate std;

use std::vec;
use std::vec::Vec;

use base::DeviceAddr;
use hal::sim::SimMemory;

use super::super::model::{BASE_HIGH, BASE_LOW, HEAD, LENGTH, QUEUES, TAIL};
use super::qtest::Qtest;
use crate::registers_pools::{VF_BYTES, VF_RX_RING, VF_TX_RING};

pub(super) const REGISTERS_AT: u64 = 0xe000_0000;
/// Those of virtual function `n`, `n` times 16 KiB behind.
pub(super) const VF_REGISTERS_AT: u64 = 0xe020_0000;
const RX: usize = 0xc000;
const TX: usize = 0xe000;

/// Whose registers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Side {
    Physical,
    Virtual(usize),
}

impl Side {
    fn at(self, offset: usize) -> u64 {
        offset as u64
            + match self {
                Self::Physical => REGISTERS_AT,
                Self::Virtual(vf) => VF_REGISTERS_AT + (vf * VF_BYTES) as u64,
            }
    }

    /// Where the physical function has the same register, if it is a ring's.
    fn as_physical(self, offset: usize) -> usize {
        match (self, offset & !0x3f) {
            (Self::Virtual(vf), VF_RX_RING) => RX + 0x40 * vf + offset % 0x40,
            (Self::Virtual(vf), VF_TX_RING) => TX + 0x40 * vf + offset % 0x40,
            (Self::Virtual(_), _) => 0,
            (Self::Physical, _) => offset,
        }
    }
}

pub(super) struct Bridge {
    pub(super) qtest: Qtest,
    memory: SimMemory,
    /// Up to where descriptors were given to the card, and taken back from it.
    given: [[u32; QUEUES]; 2],
    taken: [u32; QUEUES],
}

impl Bridge {
    pub(super) fn new(qtest: Qtest, memory: SimMemory) -> Self {
        Self {
            qtest,
            memory,
            given: [[0; QUEUES]; 2],
            taken: [0; QUEUES],
        }
    }

    pub(super) fn read32(&mut self, offset: usize) -> u32 {
        self.read_of(Side::Physical, offset)
    }

    pub(super) fn read_of(&mut self, side: Side, offset: usize) -> u32 {
        self.qtest.read32(side.at(offset))
    }

    pub(super) fn write32(&mut self, offset: usize, value: u32) {
        self.write_of(Side::Physical, offset, value);
    }

    pub(super) fn write_of(&mut self, side: Side, offset: usize, value: u32) {
        let at = side.at(offset);
        let offset = side.as_physical(offset);
        let ring = |first: usize| (first..first + 0x40 * QUEUES).contains(&offset);
        let (queue, register) = (offset / 0x40 % QUEUES, offset % 0x40);
        match (ring(RX), ring(TX), register) {
            (true, _, LENGTH) => (self.given[0][queue], self.taken[queue]) = (0, 0),
            (_, true, LENGTH) => self.given[1][queue] = 0,
            (true, _, TAIL) => self.give_empty(queue, value),
            (_, true, TAIL) => return self.give_full(queue, at, value),
            _ => (),
        }
        self.qtest.write32(at, value);
    }

    /// Where slots lie, from `*from` up to, not including, `to`.
    fn slots(&mut self, ring: usize, mut from: u32, to: u32) -> Vec<u64> {
        let base = u64::from(self.read32(ring + BASE_HIGH)) << 32
            | u64::from(self.read32(ring + BASE_LOW));
        let slots = (self.read32(ring + LENGTH) / 16).max(1);
        let mut places = Vec::new();
        while from != to {
            places.push(base + u64::from(from) * 16);
            from = (from + 1) % slots;
        }
        places
    }

    fn ours(&self, addr: u64, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        let done = self.memory.read(DeviceAddr(addr), &mut bytes);
        done.expect("the driver owns what it names");
        bytes
    }

    fn put_ours(&self, addr: u64, bytes: &[u8]) {
        let done = self.memory.write(DeviceAddr(addr), bytes);
        done.expect("the driver owns what it names");
    }

    fn give_empty(&mut self, queue: usize, tail: u32) {
        let from = core::mem::replace(&mut self.given[0][queue], tail);
        for at in self.slots(RX + 0x40 * queue, from, tail) {
            self.qtest.write(at, &self.ours(at, 16));
        }
    }

    /// The card sends while its tail is written, so descriptors come back at once.
    fn give_full(&mut self, queue: usize, register: u64, tail: u32) {
        let from = core::mem::replace(&mut self.given[1][queue], tail);
        let places = self.slots(TX + 0x40 * queue, from, tail);
        for at in &places {
            let descriptor = self.ours(*at, 16);
            self.qtest.write(*at, &descriptor);
            let [addr, command] = words(&descriptor);
            if command >> 20 & 0xf == 3 {
                let bytes = self.ours(addr, (command & 0xffff) as usize);
                self.qtest.write(addr, &bytes);
            }
        }
        self.qtest.write32(register, tail);
        for at in places {
            let descriptor = self.qtest.read(at, 16);
            self.put_ours(at, &descriptor);
        }
    }

    /// Takes over what the card has received.
    pub(super) fn take_received(&mut self, queue: usize) {
        let head = self.read32(RX + 0x40 * queue + HEAD);
        let from = core::mem::replace(&mut self.taken[queue], head);
        for at in self.slots(RX + 0x40 * queue, from, head) {
            let [buffer, _] = words(&self.ours(at, 16));
            let descriptor = self.qtest.read(at, 16);
            let len = words(&descriptor)[1] >> 32 & 0xffff;
            let bytes = self.qtest.read(buffer, len as usize);
            self.put_ours(buffer, &bytes);
            self.put_ours(at, &descriptor);
        }
    }
}

fn words(descriptor: &[u8]) -> [u64; 2] {
    let word = |at: usize| u64::from_le_bytes(descriptor[at..at + 8].try_into().expect("8 bytes"));
    [word(0), word(8)]
}
