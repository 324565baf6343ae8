//! When blocks change hands, and what is lost.

use capture::{
    Captured, DropReason, Frame, Geometry, Ring, RingRequest, Statistics, Tag, View, status,
};

use crate::world::{BLOCK_BYTES, Memory, at_ms, frame, geometry, request};

fn world(blocks: u32) -> (Ring, Memory) {
    let geometry = geometry(blocks);
    (
        Ring::new(geometry, at_ms(0)),
        Memory::new(&geometry, BLOCK_BYTES),
    )
}

/// A packet that takes a block for itself.
const LARGE: [u8; 3000] = [7; 3000];

fn receive(
    ring: &mut Ring,
    memory: &mut Memory,
    packet: &[u8],
    millis: u64,
) -> Result<Captured, DropReason> {
    ring.receive(memory, &frame(&[packet]), usize::MAX, at_ms(millis))
}

fn captured(kept: usize, is_block_ready: bool) -> Result<Captured, DropReason> {
    Ok(Captured {
        kept,
        is_block_ready,
    })
}

#[test]
fn a_full_block_is_handed_over_by_the_packet_that_does_not_fit() {
    let (mut ring, mut memory) = world(2);
    assert_eq!(
        receive(&mut ring, &mut memory, &LARGE, 1),
        captured(3000, false)
    );
    assert_eq!(memory.status_of(0), status::KERNEL);
    assert!(!ring.is_readable(&memory));
    assert_eq!(
        receive(&mut ring, &mut memory, &LARGE, 2),
        captured(3000, true)
    );
    assert_eq!(memory.status_of(0), status::USER);
    assert!(ring.is_readable(&memory));
    assert_eq!(memory.packets(0), [LARGE]);
}

#[test]
fn a_block_waits_no_longer_than_it_may() {
    let (mut ring, mut memory) = world(2);
    receive(&mut ring, &mut memory, b"a packet", 5).expect("room");
    assert_eq!(ring.deadline(), at_ms(10).clock);
    assert!(!ring.expire(&mut memory, at_ms(9)));
    assert!(ring.expire(&mut memory, at_ms(10)));
    assert_eq!(memory.status_of(0), status::USER | status::TIMER);
    assert_eq!(ring.deadline(), at_ms(20).clock);
}

#[test]
fn a_ring_tells_whether_its_timer_has_something_to_do() {
    let (mut ring, mut memory) = world(2);
    assert!(!ring.is_waiting());
    receive(&mut ring, &mut memory, b"a packet", 1).expect("room");
    assert!(ring.is_waiting());
    assert!(ring.expire(&mut memory, at_ms(10)));
    assert!(!ring.is_waiting());
}

#[test]
fn an_empty_block_is_never_handed_over() {
    let (mut ring, mut memory) = world(2);
    assert!(!ring.expire(&mut memory, at_ms(10)));
    assert_eq!(memory.status_of(0), status::KERNEL);
    assert_eq!(ring.deadline(), at_ms(20).clock);
}

#[test]
fn a_ring_without_a_free_block_drops_until_one_comes_back() {
    let (mut ring, mut memory) = world(2);
    for _ in 0..2 {
        receive(&mut ring, &mut memory, &LARGE, 1).expect("room");
    }
    for _ in 0..3 {
        let dropped = receive(&mut ring, &mut memory, &LARGE, 2);
        assert_eq!(dropped, Err(DropReason::NoFreeBlock));
    }
    assert_eq!(ring.drops().get(DropReason::NoFreeBlock), 3);
    memory.release(0);
    assert_eq!(
        receive(&mut ring, &mut memory, b"again", 3),
        captured(5, false)
    );
    memory.release(1);
    assert!(ring.expire(&mut memory, at_ms(20)));
    assert_eq!(
        memory.status_of(0),
        status::USER | status::TIMER | status::LOSING
    );
    assert_eq!(memory.packets(0), [b"again"]);
    let statistics = Statistics {
        packets: 6,
        drops: 3,
        freezes: 1,
    };
    assert_eq!(ring.take_statistics(), statistics);
    assert_eq!(ring.take_statistics(), Statistics::default());
    assert_eq!(ring.drops().get(DropReason::NoFreeBlock), 3, "they stay");
}

#[test]
fn the_timer_thaws_a_ring_that_no_packet_reaches() {
    let (mut ring, mut memory) = world(1);
    receive(&mut ring, &mut memory, b"one", 1).expect("room");
    assert!(ring.expire(&mut memory, at_ms(10)), "the only block");
    assert!(!ring.expire(&mut memory, at_ms(20)), "still the program's");
    assert_eq!(ring.deadline(), at_ms(30).clock);
    memory.release(0);
    assert!(!ring.expire(&mut memory, at_ms(30)));
    receive(&mut ring, &mut memory, b"two", 31).expect("room");
    assert!(ring.expire(&mut memory, at_ms(40)));
    assert_eq!(memory.packets(0), [b"two"]);
    assert_eq!(memory.u64_at(24), 2, "the second block in order");
}

#[test]
fn a_packet_larger_than_a_block_is_cut_to_it() {
    let (mut ring, mut memory) = world(2);
    let huge = [9; 9000];
    let room = BLOCK_BYTES - 48 - 82;
    assert_eq!(
        receive(&mut ring, &mut memory, &huge, 1),
        captured(room, false)
    );
    assert_eq!(
        receive(&mut ring, &mut memory, &huge, 1),
        captured(room, true)
    );
    assert_eq!(memory.packets(0), [&huge[..room]]);
    assert_eq!(memory.u32_at(48 + 16), 9000, "what it was");
}

#[test]
fn a_filter_says_how_much_is_kept() {
    let (mut ring, mut memory) = world(2);
    let kept = ring.receive(&mut memory, &frame(&[b"0123", b"", b"456789"]), 6, at_ms(1));
    assert_eq!(kept, captured(6, false));
    ring.expire(&mut memory, at_ms(10));
    assert_eq!(memory.packets(0), [b"012345"]);
}

#[test]
fn a_socket_without_link_headers_sees_the_packet_from_its_network_header() {
    let geometry = Geometry::check(&request(2), View::Network, 1 << 20).expect("a ring");
    let (mut ring, mut memory) = (
        Ring::new(geometry, at_ms(0)),
        Memory::new(&geometry, BLOCK_BYTES),
    );
    let parts: [&[u8]; 2] = [b"ETHERHEADER", b"...network"];
    ring.receive(&mut memory, &frame(&parts), usize::MAX, at_ms(1))
        .expect("room");
    ring.expire(&mut memory, at_ms(10));
    assert_eq!(memory.packets(0), [b"network"]);
    assert_eq!((memory.u16_at(48 + 24), memory.u16_at(48 + 26)), (96, 96));
    assert_eq!(memory.u32_at(48 + 16), 7);
}

#[test]
fn a_reserve_lies_in_front_of_the_packet() {
    let wanted = RingRequest {
        reserve_bytes: 256,
        ..request(2)
    };
    let geometry = Geometry::check(&wanted, View::Link, 1 << 20).expect("a ring");
    let (mut ring, mut memory) = (
        Ring::new(geometry, at_ms(0)),
        Memory::new(&geometry, BLOCK_BYTES),
    );
    receive(&mut ring, &mut memory, b"link header...", 1).expect("room");
    assert_eq!(
        (memory.u16_at(48 + 24), memory.u16_at(48 + 26)),
        (82 + 256, 96 + 256)
    );
}

#[test]
fn headers_that_no_offset_reaches_are_dropped_by_name() {
    let (mut ring, mut memory) = world(2);
    let long = vec![0; 70_000];
    let parts = [&long[..]];
    let captured = Frame {
        network: 66_000,
        ..frame(&parts)
    };
    let dropped = ring.receive(&mut memory, &captured, usize::MAX, at_ms(1));
    assert_eq!(dropped, Err(DropReason::HeadersTooLong));
    let captured = Frame {
        network: 4090,
        ..frame(&parts)
    };
    let dropped = ring.receive(&mut memory, &captured, usize::MAX, at_ms(1));
    assert_eq!(
        dropped.map(|captured| captured.kept),
        Ok(BLOCK_BYTES - 48 - 70)
    );
}

#[test]
fn a_tag_and_a_checksum_are_shown_in_the_header() {
    let (mut ring, mut memory) = world(2);
    let parts: [&[u8]; 1] = [b"link header...network"];
    let tagged = Frame {
        tag: Some(Tag {
            control: 0x2007,
            ether_type: 0x8100,
        }),
        flow_hash: 0x1234_5678,
        checksum: status::CHECKSUM_NOT_READY,
        ..frame(&parts)
    };
    ring.receive(&mut memory, &tagged, usize::MAX, at_ms(1))
        .expect("room");
    assert_eq!(memory.u32_at(48 + 20), 0x1 | 0x8 | 0x10 | 0x40);
    assert_eq!(memory.u32_at(48 + 28), 0x1234_5678);
    assert_eq!(
        (memory.u32_at(48 + 32), memory.u16_at(48 + 36)),
        (0x2007, 0x8100)
    );
}
