//! What takes room, who may have it, and who hears that there is some.

use crate::world::{Buffer, Bytes, page};
use base::PAGE_BYTES;
use mbuf::{Chain, HeapPool, Pool};
use models::{Heap, Plain};
use pipe::{ATOMIC_BYTES, Access, Borders, News, Read, Refusal, Written};

type Pipe = pipe::Pipe<Plain, Heap>;

fn open_pipe(pages: usize) -> Pipe {
    let pipe = Pipe::new(pages);
    let _ = pipe.enter(Access::BOTH);
    pipe
}

fn write(pipe: &Pipe, bytes: &[u8]) -> Written {
    let least = Borders::None.least(bytes.len());
    let written = pipe.write(&mut Bytes(bytes), least, Borders::None);
    written.expect("the bytes are there")
}

fn one_page(pool: &HeapPool, bytes: &[u8]) -> Chain {
    let mut chain = Chain::new();
    chain.push_back(page(pool, &mut bytes.to_vec()));
    chain
}

#[test]
fn a_write_waits_for_room_for_all_of_it_or_for_an_atomic_part() {
    let least = |count| Borders::None.least(count);
    assert_eq!([least(0), least(1)], [0, 1]);
    assert_eq!(least(ATOMIC_BYTES), ATOMIC_BYTES);
    assert_eq!(least(ATOMIC_BYTES + 1), ATOMIC_BYTES);
    assert_eq!(least(1 << 30), ATOMIC_BYTES);
    assert_eq!(Borders::Packet.least(1), PAGE_BYTES);
    let pipe = open_pipe(2);
    let _ = write(&pipe, &[1; PAGE_BYTES]);
    let long = [2; 3 * PAGE_BYTES];
    assert_eq!(
        write(&pipe, &long),
        Written::Bytes(PAGE_BYTES, News::MoreBytes),
        "a long write goes in by parts"
    );
    assert_eq!(write(&pipe, &long), Written::NoRoom);
}

#[test]
fn pages_are_lent_only_while_somebody_reads() {
    let pool = HeapPool::new(4);
    let pipe = open_pipe(2);
    pipe.leave(Access::READ);
    assert_eq!(pipe.lend(one_page(&pool, b"none")), Written::Broken);
    assert_eq!((pipe.len(), pipe.room()), (0, 2 * PAGE_BYTES));
    let _ = pipe.enter(Access::READ);
    let lent = pipe.lend(one_page(&pool, b"some"));
    assert_eq!(lent, Written::Bytes(4, News::FirstBytes));
    assert_eq!((pipe.len(), pipe.room()), (4, PAGE_BYTES));
}

#[test]
fn pages_that_nobody_can_read_any_more_go_back() {
    let pool = HeapPool::new(1);
    let pipe = open_pipe(2);
    let _ = pipe.lend(one_page(&pool, b"lost"));
    assert!(pool.alloc().is_none(), "the pipe has the page");
    pipe.leave(Access::BOTH);
    assert_eq!((pipe.len(), pipe.room()), (0, 2 * PAGE_BYTES));
    assert!(pool.alloc().is_some());
}

#[test]
fn writers_hear_of_the_room_that_splice_makes_before_it_lets_go() {
    let pipe = open_pipe(2);
    let _ = write(&pipe, &[1; 2 * PAGE_BYTES]);
    assert!(pipe.hold());
    assert_eq!(pipe.skip(PAGE_BYTES - 1), News::None);
    assert_eq!(pipe.room(), 0, "a page is free when all of it was read");
    assert_eq!(pipe.skip(1), News::Room);
    assert_eq!(pipe.room(), PAGE_BYTES);
    assert_eq!(pipe.len(), 0, "the rest is still held");
    assert_eq!(pipe.release(), News::FirstBytes);
    assert_eq!(pipe.len(), PAGE_BYTES);
}

#[test]
fn who_met_a_hold_hears_that_the_last_writer_left_meanwhile() {
    let pipe = open_pipe(1);
    let _ = write(&pipe, b"held");
    assert!(pipe.hold());
    let _ = pipe.skip(4);
    pipe.leave(Access::WRITE);
    assert!(!pipe.has_come(0), "it may wait for what is held");
    assert_eq!(pipe.release(), News::FirstBytes, "the end is news");
    assert_eq!(pipe.read(&mut Buffer::new(9)), Ok(Read::End));
}

#[test]
fn a_pipe_that_was_not_paid_for_takes_no_more_than_before() {
    let pipe = open_pipe(1);
    let refused = pipe.resize(4, || Err(Refusal::OutOfMemory));
    assert_eq!(refused, Err(Refusal::OutOfMemory));
    let written = write(&pipe, &[1; 3 * PAGE_BYTES]);
    assert_eq!(written, Written::Bytes(PAGE_BYTES, News::FirstBytes));
    assert_eq!((pipe.len(), pipe.room()), (PAGE_BYTES, 0));
}

#[test]
fn a_pipe_is_writable_while_an_atomic_write_fits() {
    let pipe = Pipe::new(2);
    let opened = pipe.enter(Access::BOTH);
    let is_writable = || pipe.look(Access::BOTH, &opened).is_writable;
    let _ = write(&pipe, &[1; PAGE_BYTES]);
    assert!(is_writable());
    let _ = write(&pipe, &[1; 1]);
    assert!(pipe.room() > 0 && !is_writable());
    assert!(!pipe.look(Access::READ, &opened).is_writable);
}

#[test]
fn an_open_file_may_do_what_it_was_opened_for() {
    let (read, write, both) = (Access::READ, Access::WRITE, Access::BOTH);
    assert!(both.contains(read) && both.contains(write) && both.contains(both));
    assert!(read.contains(read) && write.contains(write));
    assert!(!read.contains(write) && !write.contains(read));
    assert!(!read.contains(both) && !write.contains(both));
}
