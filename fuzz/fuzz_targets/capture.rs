//! Whatever a program writes into a ring that it shares, and whatever packets come, the ring
//! writes within blocks, publishes only status words, and counts each packet once.
#![no_main]

use base::Instant;
use capture::{Frame, Geometry, Now, Ring, RingMemory, RingRequest, Sender, Timestamp, View};
use libfuzzer_sys::fuzz_target;

const BLOCK_BYTES: usize = 4096;
const BLOCKS: u32 = 3;

struct Memory(Vec<u8>);

impl RingMemory for Memory {
    fn write(&mut self, at: usize, bytes: &[u8]) {
        let last = at + bytes.len().max(1) - 1;
        assert_eq!(at / BLOCK_BYTES, last / BLOCK_BYTES);
        self.0[at..][..bytes.len()].copy_from_slice(bytes);
    }

    fn status(&self, at: usize) -> u32 {
        u32::from_le_bytes(*self.0[at..].first_chunk().expect("in the ring"))
    }

    fn publish(&mut self, at: usize, status: u32) {
        assert_eq!(at % BLOCK_BYTES, 8);
        self.0[at..][..4].copy_from_slice(&status.to_le_bytes());
    }
}

fn now(millis: u64) -> Now {
    Now {
        clock: Instant::from_millis(millis),
        wall: Timestamp::default(),
    }
}

fn receive(ring: &mut Ring, memory: &mut Memory, len: u16, network: u16, millis: u64) -> bool {
    let bytes = vec![7; len.into()];
    let frame = Frame {
        parts: &[&bytes],
        network: network.into(),
        interface: 1,
        hardware_type: 1,
        protocol: 0x800,
        packet_type: 0,
        sender: Sender::default(),
        tag: None,
        flow_hash: 0,
        checksum: 0,
    };
    let received = ring.receive(memory, &frame, usize::MAX, now(millis));
    received.is_ok_and(|captured| captured.kept <= bytes.len())
}

fuzz_target!(|input: (bool, u16, Vec<(u8, u16, u16)>)| {
    let (is_link, reserve, steps) = input;
    let request = RingRequest {
        block_bytes: BLOCK_BYTES as u32,
        blocks: BLOCKS,
        frame_bytes: 2048,
        frames: 2 * BLOCKS,
        retire_ms: 10,
        private_bytes: 0,
        reserve_bytes: u32::from(reserve % 1024),
    };
    let view = if is_link { View::Link } else { View::Network };
    let geometry = Geometry::check(&request, view, 1 << 20).expect("a ring");
    let mut memory = Memory(vec![0; geometry.bytes()]);
    let mut ring = Ring::new(geometry, now(0));
    let (mut sent, mut kept) = (0, 0);
    for (millis, (what, a, b)) in (0..).zip(steps) {
        match what % 4 {
            0 => {
                sent += 1;
                kept += u32::from(receive(&mut ring, &mut memory, a, b, millis));
            }
            1 => drop(ring.expire(&mut memory, now(millis * 5))),
            2 => {
                let at = usize::from(a) % memory.0.len();
                memory.0[at] = b as u8;
            }
            _ => {
                let block = usize::from(a) % BLOCKS as usize;
                memory.publish(block * BLOCK_BYTES + 8, u32::from(b % 2));
            }
        }
        let _ = ring.is_readable(&memory);
    }
    let statistics = ring.take_statistics();
    assert_eq!(
        (statistics.packets, statistics.packets - statistics.drops),
        (sent, kept)
    );
});
