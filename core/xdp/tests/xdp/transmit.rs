//! Frames go out when the program says, and their chunks come back.

use base::SharedMemory;
use xdp::{Descriptor, NEED_WAKEUP, Sender, offset};

use crate::world::{CHUNK, Program, world};

fn turn(program: &Program, sender: &mut Sender) -> Vec<Descriptor> {
    let mut sent = Vec::new();
    let turn = sender.read(&program.tx, &program.completion, |frame| {
        sent.push(frame);
        true
    });
    sender.complete(&program.tx, &program.completion, &turn);
    sent
}

#[test]
fn what_is_in_the_ring_when_it_is_asked_for_is_sent_and_no_more() {
    let (program, _, mut sender) = world();
    program.send(CHUNK, 60);
    sender.kick(&program.tx);
    program.send(2 * CHUNK, 60);
    assert_eq!(turn(&program, &mut sender).len(), 1);
    assert_eq!(turn(&program, &mut sender).len(), 0);
    assert_eq!(program.completed(), Some(CHUNK));
    assert_eq!(program.completed(), None);
}

#[test]
fn nothing_has_happened_while_the_link_takes_no_frames() {
    let (program, _, mut sender) = world();
    program.send(CHUNK, 60);
    program.send(CHUNK, 0);
    sender.kick(&program.tx);
    let turn = sender.read(&program.tx, &program.completion, |_| true);
    assert!(!turn.is_empty());
    assert_eq!(sender.asked(), 2);
    assert_eq!(program.tx.load(offset::CONSUMER), 0);
    assert_eq!(sender.invalid(), 0);
}

#[test]
fn a_turn_ends_where_there_is_no_memory_for_a_frame() {
    let (program, _, mut sender) = world();
    for number in 0..4 {
        program.send(number * CHUNK, 60);
    }
    sender.kick(&program.tx);
    let mut buffers = 2;
    let turn = sender.read(&program.tx, &program.completion, |_| {
        let has_one = buffers != 0;
        buffers -= i32::from(has_one);
        has_one
    });
    sender.complete(&program.tx, &program.completion, &turn);
    assert_eq!(sender.asked(), 2);
    assert_eq!(program.completed(), Some(0));
    assert_eq!(program.completed(), Some(CHUNK));
    assert_eq!(program.completed(), None);
}

#[test]
fn what_is_no_frame_is_counted_and_does_not_come_back() {
    let (program, _, mut sender) = world();
    let none = [
        (0, 0),
        (0, 13),
        (0, CHUNK as u32 + 1),
        (CHUNK - 13, 14),
        (16 * CHUNK, 60),
        (u64::MAX, u32::MAX),
    ];
    for (address, len) in none {
        program.send(address, len);
    }
    let options = Descriptor {
        address: 0,
        len: 60,
        options: 1,
    };
    Program::give(&program.tx, &options.to_bytes());
    program.send(CHUNK - 14, 14);
    sender.kick(&program.tx);
    assert_eq!(turn(&program, &mut sender).len(), 1);
    assert_eq!(sender.invalid(), 7);
    assert_eq!(program.completed(), Some(CHUNK - 14));
    assert_eq!(program.completed(), None);
}

#[test]
fn a_full_completion_ring_holds_frames_back() {
    let (program, _, mut sender) = world();
    for _ in 0..2 {
        for number in 0..8 {
            program.send(number * CHUNK, 60);
        }
        sender.kick(&program.tx);
        turn(&program, &mut sender);
    }
    assert_eq!(sender.asked(), 8);
    assert_eq!(program.completed(), Some(0));
    assert_eq!(turn(&program, &mut sender).len(), 1);
    assert_eq!(sender.asked(), 7);
}

#[test]
fn a_call_that_finds_nothing_is_counted() {
    let (program, _, mut sender) = world();
    sender.kick(&program.tx);
    assert_eq!(sender.empty(), 1);
    assert!(sender.is_writable(&program.tx));
}

#[test]
fn the_ring_says_that_frames_are_sent_when_the_program_calls() {
    let (program, _, sender) = world();
    sender.ask_for_calls(&program.tx);
    assert_eq!(program.tx.load(offset::FLAGS), NEED_WAKEUP);
}
