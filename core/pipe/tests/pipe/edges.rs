//! What programs see at the edges: packets, errors half way, open files that come and go.

use crate::world::{Buffer, Bytes, Failing, page};
use base::PAGE_BYTES;
use mbuf::{Chain, HeapPool};
use models::{Heap, Plain};
use pipe::{ATOMIC_BYTES, Access, Borders, News, Read, Refusal, Sink, Written};

type Pipe = pipe::Pipe<Plain, Heap>;

fn open_pipe(pages: usize) -> Pipe {
    let pipe = Pipe::new(pages);
    let _ = pipe.enter(Access::BOTH);
    pipe
}

/// Takes `good` bytes, then fails.
struct Full {
    good: usize,
}

impl Sink for Full {
    type Error = Refusal;

    fn remaining(&self) -> usize {
        usize::MAX
    }

    fn put(&mut self, bytes: &[u8]) -> Result<usize, Refusal> {
        let count = bytes.len().min(self.good);
        self.good -= count;
        if count == 0 {
            Err(Refusal::Torn)
        } else {
            Ok(count)
        }
    }
}

/// Takes `good` bytes, fails once, and takes all after that: a page came late.
struct Late {
    good: Option<usize>,
}

impl Sink for Late {
    type Error = Refusal;

    fn remaining(&self) -> usize {
        usize::MAX
    }

    fn put(&mut self, bytes: &[u8]) -> Result<usize, Refusal> {
        match self.good.take() {
            Some(0) => Err(Refusal::Torn),
            Some(good) => {
                self.good = Some(0);
                Ok(bytes.len().min(good))
            }
            None => Ok(bytes.len()),
        }
    }
}

fn read(pipe: &Pipe, room: usize) -> Vec<u8> {
    let mut buffer = Buffer::new(room);
    let _ = pipe.read(&mut buffer).expect("the buffer takes all");
    buffer.bytes
}

fn write(pipe: &Pipe, bytes: &[u8], borders: Borders) -> Written {
    let least = borders.least(bytes.len());
    let written = pipe.write(&mut Bytes(bytes), least, borders);
    written.expect("the bytes are there")
}

#[test]
fn a_stream_keeps_what_came_before_a_bad_address_and_a_packet_nothing() {
    let pipe = open_pipe(2);
    let bytes = [7; 100];
    let broken = |good| Failing {
        bytes: &bytes,
        good,
    };
    let stream = pipe.write(&mut broken(60), 1, Borders::None);
    assert_eq!(stream, Ok(Written::Bytes(60, News::FirstBytes)));
    let nothing = pipe.write(&mut broken(0), 1, Borders::None);
    assert_eq!(nothing, Err(Refusal::Torn));
    let packet = pipe.write(&mut broken(60), 1, Borders::Packet);
    assert_eq!(packet, Err(Refusal::Torn));
    assert_eq!(pipe.len(), 60);
    assert_eq!(read(&pipe, 1000), [7; 60]);
}

#[test]
fn a_packet_that_a_reader_cannot_take_stays() {
    let pipe = open_pipe(2);
    let _ = write(&pipe, b"packet", Borders::Packet);
    assert_eq!(pipe.read(&mut Full { good: 3 }), Err(Refusal::Torn));
    assert_eq!(read(&pipe, 1000), b"packet");
}

#[test]
fn a_reader_that_breaks_off_between_bytes_and_a_loan_loses_neither() {
    let pool = HeapPool::new(1);
    let pipe = open_pipe(2);
    let _ = write(&pipe, b"ab", Borders::None);
    let mut lent = Chain::new();
    lent.push_back(page(&pool, &mut b"cd".to_vec()));
    let _ = pipe.lend(lent);
    assert_eq!(pipe.read(&mut Full { good: 0 }), Err(Refusal::Torn));
    let part = pipe.read(&mut Late { good: Some(1) });
    assert_eq!(part, Ok(Read::Bytes(1, News::None)), "b comes before c");
    let part = pipe.read(&mut Full { good: 1 });
    assert_eq!(part, Ok(Read::Bytes(1, News::Room)));
    assert_eq!(read(&pipe, 9), b"cd");
}

#[test]
fn a_packet_takes_a_page_of_room() {
    let pipe = open_pipe(3);
    let _ = write(&pipe, &[1; PAGE_BYTES + 1], Borders::None);
    assert_eq!(
        write(&pipe, b"a", Borders::Packet),
        Written::Bytes(1, News::MoreBytes)
    );
    assert_eq!(write(&pipe, b"b", Borders::Packet), Written::NoRoom);
    assert!(!pipe.has_room(Borders::Packet.least(1)));
    assert_eq!(read(&pipe, 2 * PAGE_BYTES), [1; PAGE_BYTES + 1]);
    assert_eq!(
        write(&pipe, b"b", Borders::Packet),
        Written::Bytes(1, News::MoreBytes)
    );
    assert_eq!(read(&pipe, 9), b"a");
    assert_eq!(read(&pipe, 9), b"b");
}

#[test]
fn a_page_that_was_read_in_part_still_takes_its_room() {
    let pipe = open_pipe(2);
    let _ = write(&pipe, &[1; 2 * PAGE_BYTES], Borders::None);
    assert_eq!(read(&pipe, 100).len(), 100);
    assert_eq!(pipe.room(), 0);
    let mut buffer = Buffer::new(PAGE_BYTES - 100);
    let got = pipe.read(&mut buffer).expect("the buffer takes all");
    assert_eq!(got, Read::Bytes(PAGE_BYTES - 100, News::Room));
    assert_eq!(pipe.room(), PAGE_BYTES);
}

#[test]
fn nothing_comes_after_the_last_writer_and_nothing_goes_without_readers() {
    let pipe = Pipe::new(1);
    let reader = pipe.enter(Access::READ);
    assert!(
        !pipe.look(Access::READ, &reader).is_hung_up,
        "nobody was there yet"
    );
    assert_eq!(pipe.read(&mut Buffer::new(9)), Ok(Read::End));
    let writer = pipe.enter(Access::WRITE);
    assert_eq!(pipe.read(&mut Buffer::new(9)), Ok(Read::Nothing));
    assert!(!pipe.has_come(0));
    let _ = write(&pipe, b"last", Borders::None);
    pipe.leave(Access::WRITE);
    assert!(pipe.has_come(4) && pipe.look(Access::READ, &reader).is_hung_up);
    assert_eq!(read(&pipe, 9), b"last");
    assert_eq!(pipe.read(&mut Buffer::new(9)), Ok(Read::End));

    let again = pipe.enter(Access::WRITE);
    assert!(pipe.look(Access::WRITE, &writer).is_writable);
    pipe.leave(Access::READ);
    assert!(pipe.look(Access::WRITE, &again).is_broken);
    assert_eq!(write(&pipe, b"none", Borders::None), Written::Broken);
    assert!(pipe.has_room(usize::MAX), "a writer must hear of it");
    let late = pipe.enter(Access::READ);
    pipe.leave(Access::WRITE);
    assert!(
        pipe.look(Access::READ, &late).is_hung_up,
        "it saw the writer"
    );
}

#[test]
fn what_nobody_can_read_any_more_is_dropped() {
    let pipe = open_pipe(1);
    let _ = write(&pipe, b"lost", Borders::None);
    pipe.leave(Access::READ);
    assert_eq!(pipe.len(), 4, "a reader may come");
    let pipe = open_pipe(1);
    let _ = write(&pipe, b"lost", Borders::None);
    pipe.leave(Access::BOTH);
    assert_eq!((pipe.len(), pipe.room()), (0, PAGE_BYTES));
}

#[test]
fn a_held_pipe_is_empty_to_others_but_has_not_ended() {
    let pipe = open_pipe(1);
    let _ = write(&pipe, b"held", Borders::None);
    assert!(pipe.hold());
    pipe.leave(Access::WRITE);
    assert_eq!(pipe.len(), 0);
    assert!(!pipe.has_come(0));
    assert_eq!(pipe.read(&mut Buffer::new(9)), Ok(Read::Nothing));
    assert_eq!(pipe.skip(3), News::None);
    assert_eq!(pipe.release(), News::FirstBytes);
    assert_eq!(read(&pipe, 9), b"d");
    assert!(pipe.hold(), "it has ended, which splice is to see");
    assert!(!pipe.hold());
}

#[test]
fn a_pipe_grows_only_for_those_who_pay_and_shrinks_only_around_what_it_has() {
    let pipe = open_pipe(2);
    let _ = write(&pipe, &[3; PAGE_BYTES + 5], Borders::None);
    let refused = pipe.resize(4, || Err(Refusal::OutOfMemory));
    assert_eq!(
        (refused, pipe.capacity()),
        (Err(Refusal::OutOfMemory), 2 * PAGE_BYTES)
    );
    let paid = || Ok::<(), Refusal>(());
    assert_eq!(pipe.resize(1, paid), Err(Refusal::DoesNotFit));
    assert_eq!(pipe.resize(4, paid), Ok(News::Room));
    assert_eq!(pipe.room(), 4 * PAGE_BYTES - PAGE_BYTES - 5);
    assert_eq!(read(&pipe, 2 * ATOMIC_BYTES), [3; PAGE_BYTES + 5]);
}

#[test]
fn without_memory_nothing_goes_in() {
    let pipe = open_pipe(2);
    Heap::refuse_nth(1);
    let refused = pipe.write(&mut Bytes(b"none"), 1, Borders::None);
    assert_eq!(refused, Err(Refusal::OutOfMemory));
    let refused = pipe.write(&mut Bytes(b"none"), 1, Borders::Packet);
    assert_eq!(refused, Err(Refusal::OutOfMemory));
    Heap::refuse_none();
    assert_eq!((pipe.len(), pipe.room()), (0, 2 * PAGE_BYTES));
}
