//! Requests on sockets of ours.

use posix::Events;
use uring::{Sqe, SqeFlags};

use crate::world::{Program, entry};

const NOP: u8 = 0;
const POLL: u8 = 6;
const TIMEOUT: u8 = 11;
const ACCEPT: u8 = 13;
const CANCEL: u8 = 14;
const LINK_TIMEOUT: u8 = 15;
const RECV: u8 = 27;
const MORE: u32 = 2;

fn flagged(sqe: Sqe, flags: SqeFlags) -> Sqe {
    Sqe {
        flags: flags.bits(),
        ..sqe
    }
}

#[test]
fn what_waits_goes_on_when_its_socket_says_so() {
    let mut program = Program::new(8);
    program.give(entry(RECV, 3, 1));
    program.give(entry(RECV, 4, 2));
    assert_eq!(program.enter(), 2);
    assert_eq!(program.take(), []);
    assert_eq!(program.world.watched, [3, 4]);
    program.feed(4, &[10]);
    assert_eq!(program.take(), [(2, 10, 0)]);
    program.feed(3, &[11]);
    assert_eq!(program.take(), [(1, 11, 0)]);
    assert!(!program.ring.is_busy());
}

#[test]
fn several_that_wait_for_one_socket_share_what_comes() {
    let mut program = Program::new(8);
    (1..=3).for_each(|name| program.give(entry(RECV, 3, name)));
    program.enter();
    program.feed(3, &[5, 6]);
    let mut results: Vec<i32> = program.take().iter().map(|cqe| cqe.1).collect();
    results.sort_unstable();
    assert_eq!(results, [5, 6]);
    program.feed(3, &[7]);
    assert_eq!(program.take().len(), 1);
}

#[test]
fn an_accept_of_many_shots_ends_when_completions_have_no_room() {
    let mut program = Program::new(1);
    program.give(Sqe {
        ioprio: 1,
        ..entry(ACCEPT, 3, 1)
    });
    program.enter();
    program.feed(3, &[20, 21, 22, 23]);
    assert_eq!(program.take(), [(1, 20, MORE), (1, 21, MORE)]);
    assert_eq!(program.take(), [(1, 22, 0)]);
    assert!(!program.ring.is_busy());
}

#[test]
fn completions_without_room_come_later_in_their_order() {
    let mut program = Program::new(2);
    for name in 0..10 {
        program.give(entry(NOP, -1, name));
        program.enter();
    }
    assert!(program.ring.has_overflow());
    let names: Vec<u64> = (0..4)
        .flat_map(|_| program.take())
        .map(|cqe| cqe.0)
        .collect();
    assert_eq!(names, (0..10).collect::<Vec<_>>());
}

#[test]
fn a_chain_waits_for_its_members_and_a_failure_ends_it() {
    let mut program = Program::new(8);
    program.give(flagged(entry(RECV, 3, 1), SqeFlags::IO_LINK));
    program.give(flagged(entry(RECV, 4, 2), SqeFlags::IO_LINK));
    program.give(entry(NOP, -1, 3));
    program.world.bytes.insert(4, vec![9]);
    program.enter();
    assert_eq!(program.take(), []);
    program.feed(3, &[-5]);
    let failed = [
        (1, -5, 0),
        (2, -libc::ECANCELED, 0),
        (3, -libc::ECANCELED, 0),
    ];
    assert_eq!(program.take(), failed);
}

#[test]
fn a_limit_of_time_ends_what_it_limits() {
    let mut program = Program::new(8);
    program.give(flagged(entry(RECV, 3, 1), SqeFlags::IO_LINK));
    program.give(Sqe {
        addr: 50,
        len: 1,
        ..entry(LINK_TIMEOUT, -1, 2)
    });
    program.enter();
    program.world.now = 49;
    program.work();
    assert_eq!(program.take(), []);
    program.world.now = 50;
    program.work();
    assert_eq!(
        program.take(),
        [(2, -libc::ETIME, 0), (1, -libc::ECANCELED, 0)]
    );
}

#[test]
fn a_drain_waits_for_all_before_it_and_those_after_for_it() {
    let mut program = Program::new(8);
    program.give(entry(RECV, 3, 1));
    program.give(flagged(entry(NOP, -1, 2), SqeFlags::IO_DRAIN));
    program.give(entry(NOP, -1, 3));
    program.enter();
    assert_eq!(program.take(), []);
    program.feed(3, &[1]);
    assert_eq!(program.take(), [(1, 1, 0), (2, 0, 0), (3, 0, 0)]);
}

#[test]
fn a_timeout_counts_completions() {
    let mut program = Program::new(8);
    program.give(Sqe {
        addr: 1000,
        len: 1,
        off: 2,
        ..entry(TIMEOUT, -1, 1)
    });
    program.enter();
    program.give(entry(NOP, -1, 2));
    program.enter();
    assert_eq!(program.take(), [(2, 0, 0)]);
    program.give(entry(NOP, -1, 3));
    program.enter();
    assert_eq!(program.take(), [(3, 0, 0), (1, 0, 0)]);
    assert_eq!(program.ring.next_deadline(), None);
}

#[test]
fn a_request_is_cancelled_by_its_name_and_all_by_their_socket() {
    let mut program = Program::new(8);
    (1..=3).for_each(|name| program.give(entry(RECV, 3, name)));
    program.give(Sqe {
        addr: 2,
        ..entry(CANCEL, -1, 10)
    });
    program.enter();
    let mut taken = program.take();
    taken.sort_unstable();
    assert_eq!(taken, [(2, -libc::ECANCELED, 0), (10, 0, 0)]);
    const ALL_OF_FD: u32 = 1 | 2;
    program.give(Sqe {
        op_flags: ALL_OF_FD,
        ..entry(CANCEL, 3, 11)
    });
    program.enter();
    let mut taken = program.take();
    taken.sort_unstable();
    assert_eq!(
        taken,
        [
            (1, -libc::ECANCELED, 0),
            (3, -libc::ECANCELED, 0),
            (11, 2, 0)
        ]
    );
}

#[test]
fn what_waits_for_a_number_that_is_closed_ends() {
    let mut program = Program::new(8);
    program.give(entry(RECV, 3, 1));
    program.enter();
    program.ring.note_closed(&mut program.world, 3);
    program.work();
    assert_eq!(program.take(), [(1, -libc::ECANCELED, 0)]);
    // Its next owner is watched anew.
    program.give(entry(RECV, 3, 2));
    program.enter();
    assert_eq!(program.world.watched, [3]);
}

#[test]
fn a_poll_tells_what_is_ready_and_goes_on_if_it_shall() {
    let mut program = Program::new(8);
    program.give(Sqe {
        op_flags: Events::READABLE.bits(),
        len: 1,
        ..entry(POLL, 3, 1)
    });
    program.enter();
    for _ in 0..2 {
        program.world.ready.insert(3, Events::READABLE);
        program.feed(3, &[]);
        assert_eq!(program.take(), [(1, Events::READABLE.bits() as i32, MORE)]);
    }
    program.world.ready.insert(3, Events::WRITABLE);
    program.feed(3, &[]);
    assert_eq!(program.take(), []);
}

#[test]
fn lent_buffers_are_used_in_turn_and_not_by_what_waits() {
    let mut program = Program::new(8);
    program.ring.registered.add_group(9, 4096, 4).unwrap();
    program.world.tail = 2;
    program.give(Sqe {
        ioprio: 2,
        buf_index: 9,
        ..flagged(entry(RECV, 3, 1), SqeFlags::BUFFER_SELECT)
    });
    program.enter();
    program.feed(3, &[5]);
    program.feed(3, &[6]);
    const BUFFER: u32 = 1;
    let filled = [(1, 5, BUFFER | MORE), (1, 6, BUFFER | MORE | 1 << 16)];
    let taken = program.take();
    assert_eq!(taken[..2], filled);
    assert_eq!(taken[2..], [(1, -libc::ENOBUFS, 0)]);
}

#[test]
fn what_asks_for_nothing_that_there_is_fails_with_its_chain() {
    let mut program = Program::new(8);
    program.give(flagged(entry(NOP, -1, 1), SqeFlags::IO_LINK));
    program.give(entry(200, -1, 2));
    program.enter();
    assert_eq!(
        program.take(),
        [(1, -libc::ECANCELED, 0), (2, -libc::EINVAL, 0)]
    );
}
