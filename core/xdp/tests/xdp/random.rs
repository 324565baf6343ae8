//! Program and kernel do as they like, and queues say what must have come of it.

use std::collections::VecDeque;

use models::{Random, for_each_seed};
use xdp::{Dropped, Receiver, Sender};

use crate::world::{CHUNK, CHUNKS, ENTRIES, Program, world};

#[derive(Default)]
struct Oracle {
    filled: VecDeque<u64>,
    received: VecDeque<(u64, u32)>,
    given: VecDeque<(u64, u32)>,
    asked: usize,
    completed: VecDeque<u64>,
    invalid: u64,
}

fn is_frame(address: u64, len: u32) -> bool {
    len >= 14
        && address < CHUNK * CHUNKS
        && address / CHUNK == (address + u64::from(len) - 1) / CHUNK
}

fn receive(program: &Program, receiver: &mut Receiver, oracle: &mut Oracle, random: &mut Random) {
    for _ in 0..random.below(4) {
        let len = random.below(2000_u32);
        let found = receiver.place(&program.fill, &program.rx, len as usize);
        let expected = if len > 1792 {
            Err(Dropped::TooLong)
        } else if oracle.received.len() == ENTRIES as usize {
            Err(Dropped::RingFull)
        } else {
            match oracle.filled.pop_front() {
                None => Err(Dropped::NoChunk),
                Some(at) if at >= CHUNK * CHUNKS => Err(Dropped::InvalidAddress),
                Some(at) => Ok(at / CHUNK * CHUNK + 256),
            }
        };
        assert_eq!(found, expected);
        oracle.received.extend(expected.map(|at| (at, len)));
    }
    receiver.publish(&program.fill, &program.rx);
}

fn transmit(program: &Program, sender: &mut Sender, oracle: &mut Oracle, random: &mut Random) {
    let mut buffers = random.below(6);
    let mut sent = Vec::new();
    let turn = sender.read(&program.tx, &program.completion, |frame| {
        let has_one = buffers != 0;
        buffers -= i32::from(has_one);
        if has_one {
            sent.push((frame.address, frame.len));
        }
        has_one
    });
    if random.once_in(3) {
        return;
    }
    sender.complete(&program.tx, &program.completion, &turn);
    for frame in sent {
        while oracle.given.front() != Some(&frame) {
            let (address, len) = oracle.given.pop_front().expect("it was given");
            assert!(!is_frame(address, len), "{address} was passed over");
            (oracle.invalid, oracle.asked) = (oracle.invalid + 1, oracle.asked - 1);
        }
        assert!(is_frame(frame.0, frame.1));
        oracle.given.pop_front();
        oracle.asked -= 1;
        oracle.completed.push_back(frame.0);
    }
    while oracle.asked > sender.asked() as usize {
        let (address, len) = oracle.given.pop_front().expect("it was given");
        assert!(!is_frame(address, len), "{address} was passed over");
        (oracle.invalid, oracle.asked) = (oracle.invalid + 1, oracle.asked - 1);
    }
    assert_eq!(oracle.asked, sender.asked() as usize);
    assert_eq!(oracle.invalid, sender.invalid());
    assert!(oracle.completed.len() <= ENTRIES as usize);
}

fn act(program: &Program, oracle: &mut Oracle, random: &mut Random) {
    match random.below(4) {
        0 if oracle.filled.len() < ENTRIES as usize => {
            let address = random.below(CHUNK * (CHUNKS + 1));
            program.fill(address);
            oracle.filled.push_back(address);
        }
        1 if oracle.given.len() < ENTRIES as usize => {
            let frame = (random.below(CHUNK * (CHUNKS + 1)), random.below(2100));
            program.send(frame.0, frame.1);
            oracle.given.push_back(frame);
        }
        2 => {
            let frame = program.receive().map(|frame| (frame.address, frame.len));
            assert_eq!(frame, oracle.received.pop_front());
        }
        _ => assert_eq!(program.completed(), oracle.completed.pop_front()),
    }
}

#[test]
fn frames_and_chunks_come_and_go_in_order_and_none_is_lost() {
    for_each_seed(40, |_, mut random| {
        let (program, mut receiver, mut sender) = world();
        let mut oracle = Oracle::default();
        for _ in 0..3000 {
            act(&program, &mut oracle, &mut random);
            if random.once_in(3) {
                receive(&program, &mut receiver, &mut oracle, &mut random);
            }
            if random.once_in(4) {
                sender.kick(&program.tx);
                oracle.asked = oracle.given.len();
            }
            if random.once_in(3) {
                transmit(&program, &mut sender, &mut oracle, &mut random);
            }
        }
    });
}
