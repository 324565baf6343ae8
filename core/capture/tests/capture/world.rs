//! Memory that checks the ring's promises, and a program that reads it.

use base::Instant;
use capture::{Frame, Geometry, Now, RingMemory, RingRequest, Sender, Timestamp, View, status};

pub const BLOCK_BYTES: usize = 4096;

pub struct Memory {
    pub bytes: Vec<u8>,
    block_bytes: usize,
}

impl Memory {
    pub fn new(geometry: &Geometry, block_bytes: usize) -> Self {
        Self {
            bytes: vec![0; geometry.bytes()],
            block_bytes,
        }
    }

    pub fn u32_at(&self, at: usize) -> u32 {
        u32::from_le_bytes(*self.bytes[at..].first_chunk().expect("in the ring"))
    }

    pub fn u64_at(&self, at: usize) -> u64 {
        u64::from_le_bytes(*self.bytes[at..].first_chunk().expect("in the ring"))
    }

    pub fn u16_at(&self, at: usize) -> u16 {
        u16::from_le_bytes(*self.bytes[at..].first_chunk().expect("in the ring"))
    }

    /// The program's half: gives the block back.
    pub fn release(&mut self, block: usize) {
        self.set_status(block, status::KERNEL);
    }

    pub fn set_status(&mut self, block: usize, status: u32) {
        let at = block * self.block_bytes + 8;
        self.bytes[at..at + 4].copy_from_slice(&status.to_le_bytes());
    }

    pub fn status_of(&self, block: usize) -> u32 {
        self.u32_at(block * self.block_bytes + 8)
    }

    /// The program's half: the packets of a block, as it walks them.
    pub fn packets(&self, block: usize) -> Vec<Vec<u8>> {
        let start = block * self.block_bytes;
        let count = self.u32_at(start + 12);
        let mut at = start + self.u32_at(start + 16) as usize;
        let end = start + self.u32_at(start + 20) as usize;
        let mut packets = Vec::new();
        for left in (0..count).rev() {
            let (kept, packet) = (self.u32_at(at + 12) as usize, self.u16_at(at + 24) as usize);
            assert!(at + packet + kept <= end, "the packet is in use");
            packets.push(self.bytes[at + packet..][..kept].to_vec());
            let step = self.u32_at(at) as usize;
            assert_eq!(step == 0, left == 0, "the last one leads nowhere");
            at += step;
        }
        packets
    }
}

impl RingMemory for Memory {
    fn write(&mut self, at: usize, bytes: &[u8]) {
        let (first, last) = (
            at / self.block_bytes,
            (at + bytes.len().max(1) - 1) / self.block_bytes,
        );
        assert_eq!(first, last, "a write stays in its block");
        let status = first * self.block_bytes + 8;
        assert!(
            at >= status + 4 || at + bytes.len() <= status,
            "status words are published"
        );
        self.bytes[at..][..bytes.len()].copy_from_slice(bytes);
    }

    fn status(&self, at: usize) -> u32 {
        assert_eq!(at % self.block_bytes, 8);
        self.u32_at(at)
    }

    fn publish(&mut self, at: usize, status: u32) {
        assert_eq!(at % self.block_bytes, 8);
        self.bytes[at..][..4].copy_from_slice(&status.to_le_bytes());
    }
}

pub fn request(blocks: u32) -> RingRequest {
    RingRequest {
        block_bytes: BLOCK_BYTES as u32,
        blocks,
        frame_bytes: 2048,
        frames: 2 * blocks,
        retire_ms: 10,
        private_bytes: 0,
        reserve_bytes: 0,
    }
}

pub fn geometry(blocks: u32) -> Geometry {
    Geometry::check(&request(blocks), View::Link, 1 << 20).expect("a ring")
}

pub fn at_ms(millis: u64) -> Now {
    Now {
        clock: Instant::from_millis(millis),
        wall: Timestamp {
            seconds: 1000 + (millis / 1000) as u32,
            nanoseconds: (millis % 1000) as u32 * 1_000_000,
        },
    }
}

/// An Ethernet broadcast of these bytes.
pub fn frame<'a>(parts: &'a [&'a [u8]]) -> Frame<'a> {
    Frame {
        parts,
        network: 14,
        interface: 2,
        hardware_type: 1,
        protocol: 0x88b5,
        packet_type: 1,
        sender: Sender::new(&[2, 0, 0, 0, 0, 1]),
        tag: None,
        flow_hash: 0,
        checksum: 0,
    }
}
