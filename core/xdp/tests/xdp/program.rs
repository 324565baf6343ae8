//! The program's ends against the kernel's, over the same memory: both do as they should, in any order
//! and in batches of any size, and queues say what must have come of it.

use std::collections::VecDeque;

use models::{Random, for_each_seed};
use xdp::{Descriptor, Entry, ProgramConsumer, ProgramProducer, Receiver, Sender};

use crate::world::{CHUNK, CHUNKS, ENTRIES, Program, Shared, geometry, world};

/// The program, and what is to come out of its rings.
struct Ends<'a> {
    fill: ProgramProducer<&'a Shared>,
    rx: ProgramConsumer<&'a Shared>,
    tx: ProgramProducer<&'a Shared>,
    completion: ProgramConsumer<&'a Shared>,
    filled: VecDeque<u64>,
    received: VecDeque<Descriptor>,
    given: VecDeque<Descriptor>,
    completed: VecDeque<u64>,
    /// What is in each ring in the program's eyes: entries of tx and completion go together.
    in_fill: usize,
    in_tx: usize,
}

fn ends(rings: &Program) -> Ends<'_> {
    let Program {
        fill,
        rx,
        tx,
        completion,
    } = rings;
    let (addresses, frames) = (geometry(Entry::Address), geometry(Entry::Descriptor));
    Ends {
        fill: ProgramProducer::new(fill, addresses),
        rx: ProgramConsumer::new(rx, frames),
        tx: ProgramProducer::new(tx, frames),
        completion: ProgramConsumer::new(completion, addresses),
        filled: VecDeque::new(),
        received: VecDeque::new(),
        given: VecDeque::new(),
        completed: VecDeque::new(),
        in_fill: 0,
        in_tx: 0,
    }
}

impl Ends<'_> {
    fn fill(&mut self, random: &mut Random) {
        for _ in 0..random.below(6) {
            let address = random.below(CHUNKS) * CHUNK;
            let is_put = self.fill.put_address(address);
            assert_eq!(is_put, self.in_fill < ENTRIES as usize);
            if is_put {
                self.filled.push_back(address);
                self.in_fill += 1;
            }
        }
        self.fill.submit();
    }

    fn send(&mut self, random: &mut Random) {
        for _ in 0..random.below(6) {
            let frame = Descriptor {
                address: random.below(CHUNKS) * CHUNK,
                len: 14 + random.below(2000_u32),
                options: 0,
            };
            let is_put = self.tx.put_frame(frame);
            assert_eq!(is_put, self.in_tx < ENTRIES as usize);
            if is_put {
                self.given.push_back(frame);
                self.in_tx += 1;
            }
        }
        self.tx.submit();
    }

    fn receive(&mut self, random: &mut Random) {
        for _ in 0..random.below(6) {
            assert_eq!(self.rx.take_frame(), self.received.pop_front());
        }
        self.rx.release();
    }

    fn complete(&mut self, random: &mut Random) {
        for _ in 0..random.below(6) {
            assert_eq!(self.completion.take_address(), self.completed.pop_front());
        }
        self.completion.release();
    }
}

fn deliver(ends: &mut Ends, receiver: &mut Receiver, rings: &Program, random: &mut Random) {
    let Program { fill, rx, .. } = rings;
    for _ in 0..random.below(6) {
        let len = 14 + random.below(1500_u32);
        let is_full = ends.received.len() == ENTRIES as usize;
        let chunk = if is_full {
            None
        } else {
            ends.filled.pop_front()
        };
        let placed = receiver.place(fill, rx, len as usize);
        assert_eq!(placed.ok(), chunk.map(|chunk| chunk + 256));
        ends.received.extend(placed.ok().map(|address| Descriptor {
            address,
            len,
            options: 0,
        }));
    }
    receiver.publish(fill, rx);
    ends.in_fill = ends.filled.len();
}

fn transmit(ends: &mut Ends, sender: &mut Sender, rings: &Program, random: &mut Random) {
    let Program { tx, completion, .. } = rings;
    sender.kick(tx);
    let mut buffers = random.below(6);
    let mut sent = Vec::new();
    let turn = sender.read(tx, completion, |frame| {
        let has_one = buffers != 0;
        buffers -= i32::from(has_one);
        sent.extend(has_one.then_some(frame));
        has_one
    });
    sender.complete(tx, completion, &turn);
    for frame in sent {
        assert_eq!(Some(frame), ends.given.pop_front());
        ends.completed.push_back(frame.address);
    }
    ends.in_tx = ends.given.len();
    assert_eq!(sender.invalid(), 0);
}

#[test]
fn what_either_puts_into_a_ring_the_other_takes_out_once_and_in_order() {
    for_each_seed(40, |_, mut random| {
        let (rings, mut receiver, mut sender) = world();
        let mut ends = ends(&rings);
        for _ in 0..2000 {
            match random.below(6) {
                0 => ends.fill(&mut random),
                1 => ends.receive(&mut random),
                2 => ends.send(&mut random),
                3 => ends.complete(&mut random),
                4 => deliver(&mut ends, &mut receiver, &rings, &mut random),
                _ => transmit(&mut ends, &mut sender, &rings, &mut random),
            }
        }
    });
}

#[test]
fn the_program_sees_whether_the_kernel_wants_to_be_called() {
    let (program, _, sender) = world();
    let tx = ProgramProducer::new(&program.tx, geometry(Entry::Descriptor));
    assert!(!tx.needs_wakeup());
    sender.ask_for_calls(&program.tx);
    assert!(tx.needs_wakeup());
}
