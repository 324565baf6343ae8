use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::vec::Vec;

use crate::*;

fn memory(words: usize) -> Vec<AtomicU64> {
    (0..HEADER_WORDS + words)
        .map(|_| AtomicU64::new(0))
        .collect()
}

fn stamp(cycles: u64) -> Stamp {
    Stamp {
        kind: Kind::Sample,
        cpu: 3,
        cycles,
    }
}

/// Writes a record of `length` words whose every word is `value`.
fn write(ring: &Ring<'_>, value: u64, length: usize) {
    let mut draft = ring.begin(stamp(value), length).expect("it fits");
    while draft.push(value) {}
    draft.finish();
}

fn copy(memory: &[AtomicU64], range: core::ops::Range<u64>) -> Vec<u64> {
    let range = range.start as usize..range.end as usize;
    memory[range]
        .iter()
        .map(|word| word.load(Relaxed))
        .collect()
}

fn header(memory: &[AtomicU64]) -> Option<Header> {
    Header::read(&copy(memory, 0..HEADER_WORDS as u64))
}

/// One round of a reader; gives the values of the records that it saw.
fn read(memory: &[AtomicU64], cursor: &mut Cursor) -> Vec<u64> {
    let mut seen = Vec::new();
    // A header that changed while it was copied is left for the next round.
    let Some(before) = header(memory) else {
        return seen;
    };
    let wanted = cursor.wanted(&before);
    let [first, second] = before.places(wanted.clone());
    let words = [copy(memory, first), copy(memory, second)].concat();
    let Some(after) = header(memory) else {
        return seen;
    };
    cursor.take(wanted.start, &words, &after, &mut |record| {
        assert!(
            record[3..].iter().all(|&word| word == record[2]),
            "a torn record: {record:?}"
        );
        seen.push(record[2]);
    });
    seen
}

#[test]
fn what_is_written_is_read_once_and_in_order() {
    let memory = memory(100);
    let ring = Ring::new(&memory).expect("room");
    let mut cursor = Cursor::from_start();
    let mut next = 0;
    for round in 0..50 {
        let count = round % 7;
        (next..next + count).for_each(|value| write(&ring, value, (value % 9) as usize));
        let seen = read(&memory, &mut cursor);
        assert_eq!(seen, (next..next + count).collect::<Vec<_>>());
        next += count;
    }
    assert_eq!(cursor.lost(), 0);
}

#[test]
fn a_ring_that_overflows_says_exactly_how_many_records_were_lost() {
    let memory = memory(64);
    let ring = Ring::new(&memory).expect("room");
    let mut cursor = Cursor::from_start();
    let mut seen = 0;
    for round in 0..40_u64 {
        (0..round).for_each(|value| write(&ring, value, (value * 7 % 13) as usize));
        seen += read(&memory, &mut cursor).len() as u64;
    }
    let written: u64 = (0..40).sum();
    assert!(cursor.lost() > 0, "the ring was meant to overflow");
    assert_eq!(seen + cursor.lost(), written);
}

#[test]
fn a_reader_that_comes_later_counts_from_then_on() {
    let memory = memory(64);
    let ring = Ring::new(&memory).expect("room");
    (0..100).for_each(|value| write(&ring, value, 5));
    let mut cursor = Cursor::from_now(&header(&memory).expect("a ring"));
    (100..103).for_each(|value| write(&ring, value, 5));
    assert_eq!(read(&memory, &mut cursor), [100, 101, 102]);
    assert_eq!(cursor.lost(), 0);
}

#[test]
fn a_record_that_is_not_finished_is_never_seen() {
    let memory = memory(64);
    let ring = Ring::new(&memory).expect("room");
    let mut cursor = Cursor::from_start();
    write(&ring, 1, 3);
    let _ = ring.begin(stamp(2), 3);
    write(&ring, 3, 3);
    assert_eq!(read(&memory, &mut cursor), [1, 3]);
    assert_eq!(cursor.lost(), 0);
}

#[test]
fn a_record_larger_than_the_ring_is_refused() {
    let memory = memory(16);
    let ring = Ring::new(&memory).expect("room");
    assert!(ring.begin(stamp(0), 13).is_some());
    assert!(ring.begin(stamp(0), 14).is_none());
    assert!(Ring::new(&memory[..HEADER_WORDS]).is_none());
}

#[test]
fn a_reader_beside_a_busy_writer_sees_no_torn_record() {
    let memory = memory(256);
    let ring = Ring::new(&memory).expect("room");
    let done = AtomicBool::new(false);
    const RECORDS: u64 = 200_000;
    let (seen, lost) = std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut cursor = Cursor::from_start();
            let mut seen = 0;
            loop {
                let is_last = done.load(Relaxed);
                seen += read(&memory, &mut cursor).len() as u64;
                if is_last {
                    return (seen, cursor.lost());
                }
            }
        });
        (0..RECORDS).for_each(|value| write(&ring, value, (value % 11) as usize));
        done.store(true, Relaxed);
        reader.join().expect("the reader ends")
    });
    assert_eq!(seen + lost, RECORDS);
}

#[test]
fn a_stack_comes_back_as_it_was_taken() {
    let memory = memory(STACK_RECORD_WORDS_MAX + 7);
    let ring = Ring::new(&memory).expect("room");
    let who = Who {
        pid: 7,
        tid: 9,
        name: *b"redis-server\0\0\0\0",
    };
    let user = UserFrame {
        rip: 0x40_1000,
        rsp: 0x7fff_0000,
        r15: 15,
        ..UserFrame::default()
    };
    let mut cursor = Cursor::from_start();
    for round in 0..5 {
        let mut draft = StackDraft::begin(&ring, stamp(round), who).expect("it fits");
        draft.set_extra(42);
        draft.set_user(0x1000, &user);
        (0..100).for_each(|address| _ = draft.push_kernel(address));
        assert!(draft.extend_stack(0..3));
        assert!(!draft.extend_stack(3..1000));
        draft.finish();
        let before = header(&memory).expect("a ring");
        let wanted = cursor.wanted(&before);
        let [first, second] = before.places(wanted.clone());
        let words = [copy(&memory, first), copy(&memory, second)].concat();
        let mut count = 0;
        cursor.take(wanted.start, &words, &before, &mut |record| {
            let Some(Event::Stack(stack)) = decode(record) else {
                panic!("not a stack: {record:?}");
            };
            assert_eq!((stack.stamp, stack.who), (stamp(round), who));
            assert_eq!((stack.extra, stack.space), (42, 0x1000));
            assert_eq!(stack.user, Some(user));
            assert!(stack.kernel.iter().copied().eq(0..KERNEL_FRAMES_MAX as u64));
            assert!(stack.stack.iter().copied().eq(0..STACK_WORDS_MAX as u64));
            count += 1;
        });
        assert_eq!(count, 1);
    }
}

#[test]
fn a_mapping_comes_back_with_its_path() {
    let memory = memory(100);
    let ring = Ring::new(&memory).expect("room");
    let mapping = Mapping {
        pid: 1,
        space: 0x5000,
        start: 0x10_0000,
        end: 0x20_0000,
        offset: 0x1000,
        path: b"/usr/bin/redis-server".as_slice(),
    };
    assert!(write_mapping(&ring, 0, 1, &mapping));
    let end = header(&memory).expect("a ring");
    let words = copy(&memory, HEADER_WORDS as u64..20);
    let mut paths = Vec::new();
    Cursor::from_start().take(0, &words, &end, &mut |record| {
        if let Some(Event::Mapping(found)) = decode(record) {
            assert_eq!((found.start, found.offset), (0x10_0000, 0x1000));
            paths.push(found.path.bytes().collect::<Vec<u8>>());
        }
    });
    assert_eq!(paths, [b"/usr/bin/redis-server"]);
}
