//! The model's receiver: filters, the hash, descriptors.

extern crate std;

use std::vec;
use std::vec::Vec;

use base::DeviceAddr;
use link::toeplitz::Key;

use super::model::{BASE_HIGH, BASE_LOW, DROPPED, HEAD, LENGTH, Model, QUEUES, SPLIT, TAIL};
use crate::registers::*;
use intel::filters::*;
use intel::link::*;

/// Status of a good frame: done, last, its transport checksum verified.
pub(super) const GOOD: u32 = 0x23;
const TAG_TAKEN: u32 = 1 << 3;
const DROP_WHEN_FULL: u32 = 1 << 31;
const ONE_BUFFER: u32 = 0b001 << 25;

/// What became of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fate {
    /// No filter lets it in.
    Filtered,
    /// It went to this queue, which was full.
    Dropped(usize),
    /// It went to this queue.
    Stored(usize),
}

impl Model {
    /// A frame comes over the wire.
    pub(super) fn receive(&mut self, frame: &[u8]) -> Fate {
        if self.get(RCTL) & RCTL_ENABLE == 0 || frame.len() > 1518 || !self.lets_in(frame) {
            return Fate::Filtered;
        }
        let (hash, queue) = self.spread(frame);
        let takes_tags = self.get(CTRL) & CTRL_HANDLE_TAGS != 0;
        let (bytes, tag) = match (takes_tags, tag_of(frame)) {
            (true, Some(tag)) => ([&frame[..12], &frame[16..]].concat(), tag),
            _ => (frame.to_vec(), 0),
        };
        let status = GOOD
            | if bytes.len() < frame.len() {
                TAG_TAKEN
            } else {
                0
            };
        let facts = hash.map_or(0, |hash| u64::from(hash) << 32 | 1);
        let words = [
            facts,
            u64::from(status) | (bytes.len() as u64) << 32 | u64::from(tag) << 48,
        ];
        match self.store(queue, &bytes, words) {
            true => Fate::Stored(queue),
            false => Fate::Dropped(queue),
        }
    }

    /// Stores bytes in a queue and says this about them.
    pub(super) fn store(&mut self, queue: usize, bytes: &[u8], words: [u64; 2]) -> bool {
        let ring = rx_ring(queue as u16);
        let split = self.get(ring + SPLIT);
        assert!(self.is_enabled(ring), "frames for a queue that nobody has");
        assert_eq!(split & 0x7f, 2, "buffers of two kilobytes");
        assert_eq!(split >> 25 & 7, ONE_BUFFER >> 25);
        let Some(at) = self.next(ring) else {
            assert_ne!(split & DROP_WHEN_FULL, 0, "the other queues would wait");
            self.count(ring + DROPPED, 1);
            return false;
        };
        let [buffer, header] = self.words_at(at);
        assert_eq!(header & 1, 0, "the mark is clear");
        self.write_memory(buffer, bytes);
        self.write_memory(at, &words[0].to_le_bytes());
        self.write_memory(at + 8, &words[1].to_le_bytes());
        self.count(0x4074, 1);
        self.count(0x4088, bytes.len() as u32 + 4);
        let entry = self.get(ivar(queue as u16)) & 0xff;
        if entry & IVAR_VALID != 0 {
            self.raise(entry & 0x1f);
        }
        true
    }

    fn lets_in(&self, frame: &[u8]) -> bool {
        let rctl = self.get(RCTL);
        let to = &frame[..6];
        let is_address = (0..ADDRESSES).any(|filter| {
            let low = self.get(address(filter)).to_le_bytes();
            let high = self.get(address(filter) + ADDRESS_HIGH);
            high & ADDRESS_VALID != 0 && to == [&low[..], &high.to_le_bytes()[..2]].concat()
        });
        let bit = usize::from(u16::from_le_bytes([to[4], to[5]]) >> 4);
        let is_listed = self.has_bit(MULTICAST_TABLE, bit);
        let is_for_us = match to {
            [255, 255, 255, 255, 255, 255] => rctl & RCTL_BROADCAST != 0,
            [first, ..] if first & 1 != 0 => rctl & RCTL_ALL_MULTICAST != 0 || is_listed,
            _ => rctl & RCTL_ALL_UNICAST != 0,
        };
        let is_our_vlan = match tag_of(frame) {
            Some(tag) if rctl & RCTL_FILTER_VLANS != 0 => {
                self.has_bit(VLAN_TABLE, usize::from(tag & 0xfff))
            }
            _ => true,
        };
        (is_for_us || is_address) && is_our_vlan
    }

    fn has_bit(&self, table: usize, bit: usize) -> bool {
        self.get(table + bit / 32 * 4) >> (bit % 32) & 1 != 0
    }

    /// The hash of IPv4 and IPv6 without extension headers, and the queue.
    fn spread(&self, frame: &[u8]) -> (Option<u32>, usize) {
        let at = if tag_of(frame).is_some() { 18 } else { 14 };
        let kinds = self.get(MRQC);
        if kinds & 7 != MRQC_SPREAD {
            return (None, 0);
        }
        let (addresses, ports, protocol) = match &frame[at - 2..at] {
            [8, 0] => (at + 12..at + 20, at + 20..at + 24, frame[at + 9]),
            [0x86, 0xdd] => (at + 8..at + 40, at + 40..at + 44, frame[at + 6]),
            _ => return (None, 0),
        };
        let is_v4 = addresses.len() == 8;
        let has_ports = match (protocol, is_v4) {
            (6, true) => kinds & MRQC_TCP4 != 0,
            (6, false) => kinds & MRQC_TCP6 != 0,
            (17, true) => kinds & MRQC_UDP4 != 0,
            (17, false) => kinds & MRQC_UDP6 != 0,
            _ => false,
        };
        let has_addresses = kinds & if is_v4 { MRQC_IP4 } else { MRQC_IP6 } != 0;
        if !has_ports && !has_addresses {
            return (None, 0);
        }
        let input = match has_ports {
            true => [&frame[addresses], &frame[ports]].concat(),
            false => frame[addresses].to_vec(),
        };
        let hash = self.key().hash(input);
        let entry = hash as usize % 128;
        let ring = self.get(HASH_TABLE + entry / 4 * 4) >> (entry % 4 * 8) & 0xf;
        (Some(hash), ring as usize)
    }

    fn key(&self) -> Key {
        let words = (0..10).flat_map(|word| self.get(HASH_KEY + 4 * word).to_le_bytes());
        Key(words.collect::<Vec<_>>().try_into().expect("40 bytes"))
    }

    /// The address of the next descriptor that the card owns in a ring.
    pub(super) fn next(&mut self, ring: usize) -> Option<u64> {
        let head = self.get(ring + HEAD);
        if head == self.get(ring + TAIL) {
            return None;
        }
        let slots = self.get(ring + LENGTH) / 16;
        self.put(ring + HEAD, (head + 1) % slots);
        let base =
            u64::from(self.get(ring + BASE_HIGH)) << 32 | u64::from(self.get(ring + BASE_LOW));
        Some(base + u64::from(head) * 16)
    }

    pub(super) fn words_at(&self, addr: u64) -> [u64; 2] {
        let bytes = self.read_memory(addr, 16);
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
        [word(0), word(8)]
    }

    pub(super) fn read_memory(&self, addr: u64, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        let done = self.memory.read(DeviceAddr(addr), &mut bytes);
        done.expect("the driver owns what it names");
        bytes
    }

    pub(super) fn write_memory(&self, addr: u64, bytes: &[u8]) {
        let done = self.memory.write(DeviceAddr(addr), bytes);
        done.expect("the driver owns what it names");
    }

    /// Empty buffers that a queue has.
    pub(super) fn buffers(&self, queue: usize) -> u32 {
        assert!(queue < QUEUES);
        let ring = rx_ring(queue as u16);
        let slots = (self.get(ring + LENGTH) / 16).max(1);
        (self.get(ring + TAIL) + slots - self.get(ring + HEAD)) % slots
    }
}

fn tag_of(frame: &[u8]) -> Option<u16> {
    (frame[12..14] == [0x81, 0]).then(|| u16::from_be_bytes([frame[14], frame[15]]))
}
