//! Rings under random packets, timers and programs, honest and hostile.

use capture::{Ring, status};

use crate::world::{BLOCK_BYTES, Memory, at_ms, frame, geometry};
use models::{Random, for_each_seed};

/// A packet that says which one it is.
fn packet(random: &mut Random, number: u64) -> Vec<u8> {
    let mut bytes = number.to_le_bytes().to_vec();
    bytes.resize(8 + random.below(1500) as usize, number as u8);
    bytes
}

/// An honest program: reads blocks in order and gives each back.
struct Program {
    blocks: usize,
    next: usize,
    sequence: u64,
    packets: Vec<Vec<u8>>,
}

impl Program {
    fn read(&mut self, memory: &mut Memory) {
        while memory.status_of(self.next) & status::USER != 0 {
            self.sequence += 1;
            let sequence = memory.u64_at(self.next * BLOCK_BYTES + 24);
            assert_eq!(sequence, self.sequence);
            self.packets.extend(memory.packets(self.next));
            memory.release(self.next);
            self.next = (self.next + 1) % self.blocks;
        }
    }
}

#[test]
fn an_honest_program_reads_each_packet_once_and_in_order_or_it_is_counted() {
    for_each_seed(400, |_, mut random| {
        let random = &mut random;
        let blocks = 1 + random.below(5);
        let geometry = geometry(blocks as u32);
        let mut memory = Memory::new(&geometry, BLOCK_BYTES);
        let mut ring = Ring::new(geometry, at_ms(0));
        let mut program = Program {
            blocks: blocks as usize,
            next: 0,
            sequence: 0,
            packets: Vec::new(),
        };
        let (mut sent, mut kept) = (0, Vec::new());
        for millis in 1..400 {
            if random.below(3) == 0 {
                program.read(&mut memory);
            } else {
                let bytes = packet(random, sent);
                let (head, tail) = bytes.split_at(random.below(bytes.len()));
                let parts = [head, tail];
                let received = ring.receive(&mut memory, &frame(&parts), usize::MAX, at_ms(millis));
                sent += 1;
                kept.extend(received.is_ok().then_some(bytes));
            }
            ring.expire(&mut memory, at_ms(millis));
        }
        // What is still in the ring comes out when the timer has fired.
        program.read(&mut memory);
        ring.expire(&mut memory, at_ms(1000));
        program.read(&mut memory);
        assert_eq!(program.packets, kept);
        let statistics = ring.take_statistics();
        assert_eq!(u64::from(statistics.packets), sent);
        assert_eq!(sent - u64::from(statistics.drops), kept.len() as u64);
    });
}

#[test]
fn a_program_that_scribbles_harms_only_what_it_reads() {
    for_each_seed(400, |_, mut random| {
        let random = &mut random;
        let geometry = geometry(3);
        // The memory checks that each write stays in its block.
        let mut memory = Memory::new(&geometry, BLOCK_BYTES);
        let mut ring = Ring::new(geometry, at_ms(0));
        let (mut kept, mut sent) = (0, 0);
        for millis in 1..300 {
            for _ in 0..random.below(40) {
                let at = random.below(memory.bytes.len());
                memory.bytes[at] = random.bits() as u8;
            }
            let block = random.below(3) as usize;
            memory.set_status(block, random.below(3) as u32);
            let bytes = packet(random, millis);
            let received = ring.receive(&mut memory, &frame(&[&bytes]), usize::MAX, at_ms(millis));
            sent += 1;
            kept += u32::from(received.is_ok());
            ring.expire(&mut memory, at_ms(millis));
        }
        let statistics = ring.take_statistics();
        assert_eq!(
            (statistics.packets, statistics.packets - statistics.drops),
            (sent, kept)
        );
    });
}
