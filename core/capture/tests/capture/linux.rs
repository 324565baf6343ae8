//! A block that Linux filled, by `tests/fixtures/make.py`.

use capture::{Geometry, Now, Ring, RingRequest, Timestamp, View};

use crate::world::{Memory, at_ms, frame};

fn bytes(hex: &str) -> Vec<u8> {
    let digits = |at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex");
    (0..hex.len()).step_by(2).map(digits).collect()
}

fn number(text: &str) -> u32 {
    text.parse().expect("a number")
}

#[test]
fn a_block_that_the_timer_retires_is_that_of_linux_byte_by_byte() {
    let request = RingRequest {
        block_bytes: 8192,
        blocks: 4,
        frame_bytes: 2048,
        frames: 16,
        retire_ms: 100,
        private_bytes: 20,
        reserve_bytes: 0,
    };
    let geometry = Geometry::check(&request, View::Link, 1 << 20).expect("a ring");
    let fixture = include_str!("../fixtures/linux.txt");
    let linux = bytes(fixture.split("block ").nth(1).expect("a block").trim());
    let mut memory = Memory::new(&geometry, 8192);
    // When Linux opened the block only the block says.
    memory.bytes[..linux.len()].copy_from_slice(&linux);
    let (seconds, nanoseconds) = (memory.u32_at(32), memory.u32_at(36));
    memory.bytes.fill(0);
    let opened = Now {
        wall: Timestamp {
            seconds,
            nanoseconds,
        },
        ..at_ms(0)
    };
    let mut ring = Ring::new(geometry, opened);
    for line in fixture
        .lines()
        .filter_map(|line| line.strip_prefix("frame "))
    {
        let words: Vec<_> = line.split(' ').collect();
        let time = Timestamp {
            seconds: number(words[0]),
            nanoseconds: number(words[1]),
        };
        let packet = bytes(words[2]);
        let parts = [&packet[..20], &packet[20..]];
        let captured = frame(&parts);
        // The second one has an address of its own: to another host.
        let to_all = packet[0] == 0xff;
        let captured = capture::Frame {
            packet_type: if to_all { 1 } else { 3 },
            ..captured
        };
        let now = Now {
            wall: time,
            ..at_ms(1)
        };
        ring.receive(&mut memory, &captured, usize::MAX, now)
            .expect("room");
    }
    assert!(ring.expire(&mut memory, at_ms(100)));
    assert_eq!(memory.bytes[..linux.len()], linux);
}
