//! Requests end once, in any order, with what the device said.

use block::{Done, Durability, Failure, Operation, REQUESTS_MAX, Verdict};
use models::for_each_seed;

use crate::rig::{Rig, limits, range};

#[test]
fn commands_beyond_the_devices_depth_wait_for_their_turn() {
    let mut rig = Rig::new(limits(), 2);
    for number in 0..10 {
        rig.write(
            number,
            u64::from(number) * 8,
            number as u8,
            Durability::Volatile,
        );
    }
    assert_eq!(rig.disk.pending(), 2);
    rig.disk.finish(1);
    rig.complete();
    assert_eq!(rig.ended[0].0, 1);
    assert_eq!(rig.disk.pending(), 2, "the next was sent");
    rig.run(&mut |_| 0);
    assert_eq!(rig.ended.len(), 10);
    assert_eq!(rig.disk.bytes(range(72, 1))[0], 9);
}

#[test]
fn requests_beyond_the_queues_bound_are_not_taken() {
    let mut rig = Rig::new(limits(), 1);
    for number in 0..REQUESTS_MAX as u32 {
        rig.write(number, 0, 0, Durability::Volatile);
    }
    let one_more = rig.request(999, Operation::Read, range(0, 1), &[512], 0);
    assert!(!rig.submit(one_more));
    rig.disk.finish(0);
    rig.complete();
    let one_more = rig.request(999, Operation::Read, range(0, 1), &[512], 0);
    assert!(rig.submit(one_more));
    rig.run(&mut |_| 0);
    assert_eq!(rig.ended.len(), REQUESTS_MAX + 1);
}

#[test]
fn an_error_of_one_command_is_the_requests_and_nobody_elses() {
    let mut rig = Rig::new(limits(), 8);
    let write = Operation::Write(Durability::Volatile);
    let long = rig.request(0, write, range(0, 96), &[16384, 16384, 16384], 1);
    assert!(rig.submit(long));
    rig.write(1, 200, 2, Durability::Volatile);
    assert_eq!(rig.disk.pending(), 4);
    rig.disk.end_next_with(Verdict::Done);
    rig.disk.end_next_with(Verdict::Failed);
    rig.run(&mut |_| 0);
    assert_eq!(rig.outcome(0), Err(Failure::Medium));
    assert!(matches!(rig.outcome(1), Ok(Done::Written(_))));
    let commands = rig.disk.commands();
    assert_eq!(commands, 4, "the device's own errors are not tried again");
}

#[test]
fn each_request_ends_once_whatever_the_order_and_the_errors() {
    for_each_seed(200, |_, mut random| {
        let mut rig = Rig::new(limits(), 1 + random.below(6u16));
        let count = 40;
        for number in 0..count {
            let blocks = 1 + random.below(12u64);
            let first = random.below(100u64) * 8;
            let operation = match random.below(4u32) {
                0 => Operation::Flush,
                1 => Operation::Write(Durability::Forced),
                2 => Operation::Write(Durability::Volatile),
                _ => Operation::Read,
            };
            let (sectors, lens) = match operation {
                Operation::Flush => (range(0, 0), vec![]),
                _ => (range(first, blocks * 8), vec![blocks as usize * 4096]),
            };
            let request = rig.request(number, operation, sectors, &lens, number as u8);
            assert!(rig.submit(request));
            if random.once_in(3u32) {
                rig.disk.end_next_with(Verdict::Failed);
            }
            if rig.disk.pending() != 0 && random.once_in(2u32) {
                rig.disk.finish(random.below(rig.disk.pending()));
                rig.complete();
            }
        }
        rig.run(&mut |count| random.below(count));
        let mut numbers: Vec<u32> = rig.ended.iter().map(|(number, ..)| *number).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, (0..count).collect::<Vec<_>>());
        let counters = rig.queue.counters(rig.now);
        let ended = counters.reads.requests + counters.writes.requests + counters.flushes.requests;
        assert_eq!((ended, counters.under_way), (u64::from(count), 0));
        assert_eq!(counters.commands, rig.disk.commands());
        assert_eq!(rig.memory.buffers(), 0);
    });
}
