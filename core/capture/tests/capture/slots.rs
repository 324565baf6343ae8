//! Rings with a slot for each packet.

use capture::{DropReason, Refusal, RingMemory, SlotGeometry, SlotRing, Timestamp, View, status};

use crate::world::{frame, request};

const SLOT_BYTES: usize = 2048;
const SLOTS: usize = 4;
const TIME: Timestamp = Timestamp {
    seconds: 7,
    nanoseconds: 9,
};

/// Memory that checks that only a slot of the kernel's is written to, its status last.
struct Memory(Vec<u8>);

impl Memory {
    fn u32_at(&self, at: usize) -> u32 {
        u32::from_le_bytes(*self.0[at..].first_chunk().expect("in the ring"))
    }

    fn u16_at(&self, at: usize) -> u16 {
        u16::from_le_bytes(*self.0[at..].first_chunk().expect("in the ring"))
    }

    fn release(&mut self, slot: usize) {
        self.publish(slot * SLOT_BYTES, status::KERNEL);
    }

    /// The packet in a slot, as the program finds it.
    fn packet(&self, slot: usize) -> &[u8] {
        let at = slot * SLOT_BYTES;
        let (kept, packet) = (self.u32_at(at + 8), self.u16_at(at + 12));
        &self.0[at + usize::from(packet)..][..kept as usize]
    }
}

impl RingMemory for Memory {
    fn write(&mut self, at: usize, bytes: &[u8]) {
        let slot = at / SLOT_BYTES;
        assert_eq!(self.status(slot * SLOT_BYTES), status::KERNEL);
        assert_eq!(
            (at + bytes.len() - 1) / SLOT_BYTES,
            slot,
            "inside of a slot"
        );
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
    }

    fn status(&self, at: usize) -> u32 {
        self.u32_at(at)
    }

    fn publish(&mut self, at: usize, status: u32) {
        self.0[at..at + 4].copy_from_slice(&status.to_le_bytes());
    }
}

fn world(view: View) -> (SlotRing, Memory) {
    let geometry = SlotGeometry::check(&request(2), view, 1 << 20).expect("it is possible");
    let bytes = geometry.bytes();
    assert_eq!(bytes, SLOTS * SLOT_BYTES);
    (SlotRing::new(geometry), Memory(vec![0; bytes]))
}

fn receive(ring: &mut SlotRing, memory: &mut Memory, packet: &[u8]) -> Result<usize, DropReason> {
    ring.receive(memory, &frame(&[packet]), usize::MAX, TIME)
}

#[test]
fn each_packet_is_handed_over_at_once() {
    let (mut ring, mut memory) = world(View::Link);
    assert!(!ring.is_readable(&memory));
    for slot in 0..SLOTS {
        let packet = vec![slot as u8; 60 + slot];
        assert_eq!(receive(&mut ring, &mut memory, &packet), Ok(packet.len()));
        assert!(ring.is_readable(&memory));
        assert_eq!(memory.status(slot * SLOT_BYTES), status::USER);
        assert_eq!(memory.packet(slot), packet);
        let at = slot * SLOT_BYTES;
        assert_eq!(memory.u32_at(at + 4) as usize, packet.len());
        assert_eq!([memory.u32_at(at + 16), memory.u32_at(at + 20)], [7, 9]);
    }
}

#[test]
fn a_ring_whose_slots_are_all_the_programs_drops_until_one_comes_back() {
    let (mut ring, mut memory) = world(View::Link);
    for _ in 0..SLOTS {
        receive(&mut ring, &mut memory, &[1; 60]).expect("room");
    }
    let dropped = receive(&mut ring, &mut memory, &[2; 60]);
    assert_eq!(dropped, Err(DropReason::NoFreeSlot));
    memory.release(0);
    receive(&mut ring, &mut memory, &[3; 60]).expect("room");
    assert_eq!(memory.status(0), status::USER | status::LOSING);
    let counted = ring.take_statistics();
    assert_eq!((counted.packets, counted.drops), (6, 1));
}

#[test]
fn a_packet_larger_than_a_slot_is_cut_to_it() {
    for view in [View::Link, View::Network] {
        let (mut ring, mut memory) = world(view);
        let packet: Vec<u8> = (0..4000_u32).map(|at| at as u8).collect();
        let kept = receive(&mut ring, &mut memory, &packet).expect("room");
        let packet_at = usize::from(memory.u16_at(12));
        assert_eq!(packet_at + kept, SLOT_BYTES);
        assert!(packet.windows(kept).any(|part| part == memory.packet(0)));
    }
}

#[test]
fn rings_of_slots_that_cannot_be_are_refused() {
    let refused = |change: &dyn Fn(&mut capture::RingRequest)| {
        let mut wanted = request(2);
        change(&mut wanted);
        SlotGeometry::check(&wanted, View::Link, 1 << 20).err()
    };
    assert_eq!(refused(&|_| ()), None);
    let odd = refused(&|wanted| wanted.block_bytes = 1000);
    assert_eq!(odd, Some(Refusal::BlockBytes(1000)));
    let small = refused(&|wanted| wanted.frame_bytes = 48);
    assert_eq!(small, Some(Refusal::FrameBytes(48)));
    let few = refused(&|wanted| wanted.frames = 1);
    assert_eq!(few, Some(Refusal::Frames { fit: 4 }));
}
