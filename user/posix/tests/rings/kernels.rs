//! Requests that the kernel has.

use uring::{Sqe, SqeFlags};

use crate::world::{KERNELS, Program, entry};

const READ: u8 = 22;
const READ_FIXED: u8 = 4;
const POLL: u8 = 6;
const CANCEL: u8 = 14;
const LINK_TIMEOUT: u8 = 15;
const RECV: u8 = 27;
const FILE: i32 = KERNELS + 1;
const MORE: u32 = 2;

fn linked(sqe: Sqe) -> Sqe {
    Sqe {
        flags: SqeFlags::IO_LINK.bits(),
        ..sqe
    }
}

#[test]
fn a_chain_goes_from_ours_to_the_kernel_and_back() {
    let mut program = Program::new(8);
    program.give(linked(entry(RECV, 3, 1)));
    program.give(linked(entry(READ, FILE, 2)));
    program.give(entry(RECV, 4, 3));
    program.world.bytes.insert(4, vec![4]);
    program.enter();
    assert!(program.world.forwarded.is_empty());
    program.feed(3, &[8]);
    let [forwarded] = program.world.forwarded[..] else {
        panic!("{:?}", program.world.forwarded);
    };
    assert_eq!((forwarded.fd, forwarded.flags), (FILE, 0));
    assert_eq!(program.take(), [(1, 8, 0)]);
    program.complete(0, 16, 0);
    assert_eq!(program.take(), [(2, 16, 0), (3, 4, 0)]);
    assert_eq!(program.ring.forwarded(), 0);
}

#[test]
fn what_waits_for_a_socket_that_becomes_the_kernels_goes_on_there() {
    let mut program = Program::new(8);
    program.give(entry(RECV, 3, 1));
    program.enter();
    program.world.handed_over.push(3);
    program.ring.note_moved(&mut program.world, 3);
    program.work();
    assert_eq!(program.world.forwarded.len(), 1);
    program.complete(0, 9, 0);
    assert_eq!(program.take(), [(1, 9, 0)]);
    assert!(program.world.watched.is_empty());
}

#[test]
fn what_the_kernel_completes_several_times_is_carried_over_each_time() {
    let mut program = Program::new(8);
    program.give(Sqe {
        len: 1,
        ..entry(POLL, FILE, 1)
    });
    program.enter();
    program.complete(0, 1, MORE);
    program.complete(0, 1, MORE);
    program.complete(0, -libc::EBADF, 0);
    assert_eq!(
        program.take(),
        [(1, 1, MORE), (1, 1, MORE), (1, -libc::EBADF, 0)]
    );
    assert!(!program.ring.is_busy());
}

#[test]
fn what_its_program_gave_before_keeps_its_name() {
    let mut program = Program::new(8);
    program
        .ring
        .note_completed(&mut program.world, 0x7fff_1234_5678, (5, 0));
    assert_eq!(program.take(), [(0x7fff_1234_5678, 5, 0)]);
}

#[test]
fn a_cancellation_of_what_the_kernel_has_is_the_kernels() {
    let mut program = Program::new(8);
    program.give(entry(READ, FILE, 1));
    program.give(Sqe {
        addr: 1,
        ..entry(CANCEL, -1, 2)
    });
    program.enter();
    let [read, cancel] = program.world.forwarded[..] else {
        panic!("{:?}", program.world.forwarded);
    };
    assert_eq!((cancel.opcode, cancel.addr), (CANCEL, read.user_data));
    program.complete(1, 0, 0);
    program.complete(0, -libc::ECANCELED, 0);
    assert_eq!(program.take(), [(2, 0, 0), (1, -libc::ECANCELED, 0)]);
}

#[test]
fn what_the_kernel_has_read_in_spite_of_a_limit_is_not_lost() {
    let mut program = Program::new(8);
    program.give(linked(entry(READ, FILE, 1)));
    program.give(Sqe {
        addr: 50,
        len: 1,
        ..entry(LINK_TIMEOUT, -1, 2)
    });
    program.enter();
    program.world.now = 50;
    program.work();
    assert_eq!(program.take(), [(2, -libc::ETIME, 0)]);
    program.complete(0, 12, 0);
    assert_eq!(program.take(), [(1, 12, 0)]);
    assert!(!program.ring.is_busy());
}

#[test]
fn registered_buffers_are_checked_here() {
    let mut program = Program::new(8);
    program
        .ring
        .registered
        .set_buffers(&program.world, 4096, 1)
        .unwrap();
    let within = |addr, len| Sqe {
        addr,
        len,
        ..entry(READ_FIXED, FILE, 1)
    };
    program.give(within(0x1000, 64));
    program.give(within(0x1000, 65));
    program.enter();
    assert_eq!(program.take(), [(1, -libc::EFAULT, 0)]);
    let [forwarded] = program.world.forwarded[..] else {
        panic!("{:?}", program.world.forwarded);
    };
    assert_eq!(forwarded.opcode, READ);
}

#[test]
fn a_lent_buffer_for_a_file_is_chosen_when_there_is_something_to_read() {
    let mut program = Program::new(8);
    program.ring.registered.add_group(9, 4096, 4).unwrap();
    program.world.tail = 1;
    program.give(Sqe {
        flags: SqeFlags::BUFFER_SELECT.bits(),
        buf_index: 9,
        ..entry(RECV, FILE, 1)
    });
    program.enter();
    let [waits] = program.world.forwarded[..] else {
        panic!("{:?}", program.world.forwarded);
    };
    assert_eq!(waits.opcode, POLL);
    program.world.bytes.insert(FILE, vec![6]);
    program.complete(0, 1, 0);
    assert_eq!(program.take(), [(1, 6, 1)]);
}
