//! What a log does while nothing goes wrong.

use models::Random;

use super::disk::SimDisk;
use super::shell::{Model, Shell, opened};
use crate::{AppendError, Command, HEADER_BYTES, OpenError, Place, Promise, Shape, Stray};

fn shell(blocks: u64) -> Shell {
    let mut disk = SimDisk::new(512, blocks);
    let log = crate::format(&mut disk, 1).unwrap();
    Shell::new(log, disk, Model::default(), 0)
}

#[test]
fn an_entry_passes_three_points() {
    let (mut shell, mut random) = (shell(34), Random::new(1));
    let ticket = shell.append(100, Promise::Durable).unwrap();
    let points = |shell: &Shell| {
        let log = &shell.log;
        [log.submitted(), log.accepted(), log.durable()].map(Place::sequence)
    };
    assert_eq!(points(&shell), [0, 0, 0]);
    shell.send();
    assert_eq!(points(&shell), [1, 0, 0]);
    shell.finish(0, &mut random).unwrap();
    assert_eq!(points(&shell), [1, 1, 0]);
    shell.send();
    shell.finish(0, &mut random).unwrap();
    assert_eq!(points(&shell), [1, 1, 1]);
    assert_eq!(shell.log.durable(), ticket.end);
}

#[test]
fn many_appends_share_a_flush_and_what_comes_later_gathers_for_the_next() {
    let (mut shell, mut random) = (shell(514), Random::new(1));
    for _ in 0..5 {
        shell.append(10, Promise::Durable).unwrap();
    }
    shell.send();
    for _ in 0..5 {
        shell.finish(0, &mut random).unwrap();
    }
    shell.send();
    for _ in 0..5 {
        shell.append(10, Promise::Durable).unwrap();
    }
    shell.send();
    assert_eq!(shell.disk.pending(), 6, "a flush and five writes");
    for _ in 0..5 {
        shell.finish(1, &mut random).unwrap();
        shell.send();
    }
    assert_eq!(shell.disk.pending(), 1, "one flush at a time");
    shell.finish(0, &mut random).unwrap();
    assert_eq!(
        shell.log.durable().sequence(),
        5,
        "the second five came too late for it"
    );
    shell.settle(&mut random).unwrap();
    assert_eq!(shell.log.durable().sequence(), 10);
}

#[test]
fn a_lone_entry_is_forced_where_the_device_can() {
    let mut shell = shell(34);
    shell.log.force_lone_writes();
    shell.append(10, Promise::Durable).unwrap();
    shell.send();
    shell.finish(0, &mut Random::new(1)).unwrap();
    assert_eq!(shell.log.durable().sequence(), 1);
    assert_eq!(shell.log.next_command(), None, "no flush is needed");
}

#[test]
fn what_comes_beside_a_write_is_one_group_and_is_forced() {
    let (mut shell, mut random) = (shell(34), Random::new(1));
    shell.log.force_lone_writes();
    shell.append(10, Promise::Durable).unwrap();
    shell.send();
    for _ in 0..3 {
        shell.append(10, Promise::Durable).unwrap();
        shell.send();
    }
    assert_eq!(shell.disk.pending(), 1, "they gather");
    shell.finish(0, &mut random).unwrap();
    shell.send();
    assert_eq!(shell.disk.pending(), 3);
    for _ in 0..3 {
        shell.finish(0, &mut random).unwrap();
    }
    assert_eq!(shell.log.durable().sequence(), 4, "without a flush");
}

#[test]
fn a_group_behind_entries_that_nobody_waits_for_takes_a_flush() {
    let (mut shell, mut random) = (shell(34), Random::new(1));
    shell.log.force_lone_writes();
    shell.append(10, Promise::Accepted).unwrap();
    shell.settle(&mut random).unwrap();
    shell.append(10, Promise::Durable).unwrap();
    shell.settle(&mut random).unwrap();
    assert_eq!(shell.log.durable().sequence(), 2);
}

#[test]
fn a_full_log_refuses_before_it_writes_and_has_room_after_a_trim() {
    let (mut shell, mut random) = (shell(34), Random::new(1));
    let mut count = 0;
    while shell.append(10, Promise::Durable).is_ok() {
        shell.settle(&mut random).unwrap();
        count += 1;
    }
    assert_eq!(count, 32);
    assert_eq!(shell.append(10, Promise::Durable), Err(AppendError::Full));
    assert_eq!(shell.log.next_command(), None);
    shell.log.trim(shell.log.durable()).unwrap();
    shell.model.head = 32;
    assert_eq!(shell.append(10, Promise::Durable), Err(AppendError::Full));
    shell.settle(&mut random).unwrap();
    assert_eq!(shell.log.trimmed().sequence(), 32);
    assert_eq!(shell.log.free_blocks(), 32);
    shell.append(10, Promise::Durable).unwrap();
}

#[test]
fn what_is_too_long_or_too_much_at_once_is_refused() {
    let mut shell = shell(34);
    let max = shell.log.shape().entry_bytes_max();
    assert_eq!(max, 8 * 512 - HEADER_BYTES);
    let too_long = shell.append(max + 1, Promise::Durable);
    assert_eq!(too_long, Err(AppendError::TooLong));
    shell.append(max, Promise::Accepted).unwrap();
    assert_eq!(shell.append(0, Promise::Accepted), Err(AppendError::Busy));
    shell.settle(&mut Random::new(1)).unwrap();
    shell.append(0, Promise::Accepted).unwrap();
}

#[test]
fn nobody_waits_for_ever_when_nobody_asked_for_a_flush() {
    let (mut shell, mut random) = (shell(130), Random::new(1));
    for _ in 0..100 {
        let mut appended = shell.append(10, Promise::Accepted);
        if appended == Err(AppendError::Busy) {
            shell.settle(&mut random).unwrap();
            appended = shell.append(10, Promise::Accepted);
        }
        appended.unwrap();
    }
}

#[test]
fn recovery_reads_no_more_than_its_bound() {
    struct Counting(SimDisk, u64);
    impl crate::Area for Counting {
        fn block_bytes(&self) -> u32 {
            self.0.block_bytes()
        }
        fn blocks(&self) -> u64 {
            self.0.blocks()
        }
        fn read(&mut self, first: u64, into: &mut [u8]) -> Result<(), block::Failure> {
            self.1 += into.len() as u64 / 512;
            self.0.read(first, into)
        }
        fn write(&mut self, first: u64, from: &[u8]) -> Result<(), block::Failure> {
            self.0.write(first, from)
        }
        fn flush(&mut self) -> Result<(), block::Failure> {
            self.0.flush()
        }
    }
    let (mut shell, mut random) = (shell(2050), Random::new(1));
    for _ in 0..2000 {
        shell.append(10, Promise::Durable).unwrap();
        shell.settle(&mut random).unwrap();
        let disk = shell.disk.after_loss(&mut |_| 0);
        let mut disk = Counting(disk, 0);
        crate::open(&mut disk).unwrap();
        // Each entry is looked at twice; then two windows and the anchors, four times.
        let shape = shell.log.shape();
        let bound = 2 * shape.scan_blocks_max() + 2 * shape.window_blocks() + 9;
        assert!(disk.1 <= bound, "{} of {bound}", disk.1);
    }
}

#[test]
fn a_log_is_bound_to_its_area_and_its_numbers() {
    let mut shell = shell(34);
    assert_eq!(Shape::new(512, 9), None);
    assert_eq!(Shape::new(768, 900), None);
    let stray = shell
        .log
        .complete(crate::CommandId::Anchor, Ok(block::Done::Read));
    assert_eq!(stray, Err(Stray));
    shell.append(10, Promise::Durable).unwrap();
    let beyond = shell.log.trim(shell.log.end());
    assert_eq!(beyond, Err(crate::NotDurable));
    assert!(matches!(
        shell.log.next_command(),
        Some(Command::Write { .. })
    ));
    let mut empty = SimDisk::new(512, 34);
    assert_eq!(crate::open(&mut empty).err(), Some(OpenError::NotALog));
}

#[test]
fn what_was_appended_is_read_after_another_opening() {
    let (mut shell, mut random) = (shell(100), Random::new(1));
    for len in [0, 1, 447, 448, 449, 3000] {
        shell.append(len, Promise::Durable).unwrap();
        shell.settle(&mut random).unwrap();
    }
    let disk = shell.disk.after_loss(&mut |_| 0);
    let again = opened(disk, shell.model.clone(), 0).unwrap();
    assert_eq!(again.log.end().sequence(), 6);
}
