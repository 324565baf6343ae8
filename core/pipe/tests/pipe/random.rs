//! Long histories of reads, writes, splices and resizings, beside a queue of bytes.

use std::collections::VecDeque;

use crate::world::{Buffer, Bytes, page};
use base::PAGE_BYTES;
use mbuf::{Chain, HeapPool};
use models::{Heap, Plain, Random, for_each_seed};
use pipe::{ATOMIC_BYTES, Access, Borders, News, Read, Refusal, Written};

type Pipe = pipe::Pipe<Plain, Heap>;

/// What lies in the pipe, in order.
#[derive(Clone, Debug)]
enum Piece {
    Bytes(VecDeque<u8>),
    Packet(VecDeque<u8>),
    Loan(VecDeque<u8>),
}

impl Piece {
    fn bytes(&self) -> &VecDeque<u8> {
        match self {
            Self::Bytes(bytes) | Self::Packet(bytes) | Self::Loan(bytes) => bytes,
        }
    }

    fn bytes_mut(&mut self) -> &mut VecDeque<u8> {
        match self {
            Self::Bytes(bytes) | Self::Packet(bytes) | Self::Loan(bytes) => bytes,
        }
    }
}

/// A queue in place of the pipe.
#[derive(Default)]
struct Model(VecDeque<Piece>);

impl Model {
    fn len(&self) -> usize {
        self.0.iter().map(|piece| piece.bytes().len()).sum()
    }

    fn loans(&self) -> usize {
        let is_loan = |piece: &&Piece| matches!(piece, Piece::Loan(_));
        self.0.iter().filter(is_loan).count()
    }

    fn put(&mut self, bytes: &[u8]) {
        match self.0.back_mut() {
            Some(Piece::Bytes(last)) => last.extend(bytes),
            _ => self
                .0
                .push_back(Piece::Bytes(bytes.iter().copied().collect())),
        }
    }

    /// All bytes in order.
    fn bytes(&self) -> Vec<u8> {
        let bytes = self.0.iter().flat_map(|piece| piece.bytes());
        bytes.copied().collect()
    }

    /// What a read of `limit` bytes gets: up to a packet, or one packet, whose rest is lost.
    fn read(&mut self, limit: usize) -> Vec<u8> {
        if let Some(Piece::Packet(packet)) = self.0.front() {
            let bytes: Vec<u8> = packet.iter().copied().take(limit).collect();
            self.0.pop_front();
            return bytes;
        }
        let is_free = |piece: &&Piece| !matches!(piece, Piece::Packet(_));
        let before = self.0.iter().take_while(is_free);
        let bytes = before.flat_map(|piece| piece.bytes()).copied();
        let bytes: Vec<u8> = bytes.take(limit).collect();
        self.skip(bytes.len());
        bytes
    }

    fn skip(&mut self, count: usize) {
        let mut left = count;
        while left != 0
            && let Some(first) = self.0.front_mut()
        {
            let taken = left.min(first.bytes().len());
            first.bytes_mut().drain(..taken);
            left -= taken;
            if first.bytes().is_empty() {
                self.0.pop_front();
            }
        }
    }
}

struct Run {
    pipe: Pipe,
    model: Model,
    random: Random,
    next: u8,
    is_held: bool,
    /// After the pipe: it is dropped last.
    pool: HeapPool,
}

const PAGES: usize = 4;

impl Run {
    fn new(random: Random) -> Self {
        let pipe = Pipe::new(PAGES);
        let _ = pipe.enter(Access::BOTH);
        Self {
            pipe,
            model: Model::default(),
            random,
            next: 0,
            is_held: false,
            pool: HeapPool::new(64),
        }
    }

    /// As many bytes as a program likes to pass, no two neighbours alike.
    fn fresh(&mut self) -> Vec<u8> {
        let count = match self.random.below(4) {
            0 => 1 + self.random.below(3),
            1 => 1 + self.random.below(ATOMIC_BYTES),
            2 => ATOMIC_BYTES,
            _ => 1 + self.random.below(3 * PAGE_BYTES),
        };
        let bytes = (0..count).map(|_| {
            self.next = self.next.wrapping_add(1);
            self.next
        });
        bytes.collect()
    }

    fn step(&mut self) {
        match self.random.below(12) {
            0..=2 => self.write(),
            3 => self.write_packet(),
            4..=5 => self.lend(),
            6..=8 => self.read(),
            9 => self.peek(),
            10 => self.splice(),
            _ => self.resize(),
        }
        let readable = if self.is_held { 0 } else { self.model.len() };
        assert_eq!(self.pipe.len(), readable);
        assert!(self.model.loans() * PAGE_BYTES <= self.pipe.capacity());
        let used = self.pipe.capacity() - self.pipe.room();
        assert!(used >= self.model.len().min(self.pipe.capacity()));
    }

    /// What is written shows all or, if there is no room for an atomic part of it, not at all.
    fn write(&mut self) {
        let bytes = self.fresh();
        let least = Borders::None.least(bytes.len());
        let (room, was_empty) = (self.pipe.room(), self.model.len() == 0);
        let written = self.pipe.write(&mut Bytes(&bytes), least, Borders::None);
        if room < least {
            assert_eq!(written, Ok(Written::NoRoom));
            return;
        }
        let count = bytes.len().min(room);
        assert_eq!(written, Ok(Written::Bytes(count, news(was_empty))));
        self.model.put(&bytes[..count]);
    }

    fn write_packet(&mut self) {
        let bytes = self.fresh();
        let least = Borders::Packet.least(bytes.len());
        let (room, was_empty) = (self.pipe.room(), self.model.len() == 0);
        let written = self.pipe.write(&mut Bytes(&bytes), least, Borders::Packet);
        if room < PAGE_BYTES {
            assert_eq!(written, Ok(Written::NoRoom));
            return;
        }
        let count = bytes.len().min(ATOMIC_BYTES);
        assert_eq!(written, Ok(Written::Bytes(count, news(was_empty))));
        let packet = bytes[..count].iter().copied().collect();
        self.model.0.push_back(Piece::Packet(packet));
    }

    fn lend(&mut self) {
        let count = 1 + self.random.below(3);
        let mut chain = Chain::new();
        let mut pages = Vec::new();
        for _ in 0..count {
            let mut bytes = self.fresh();
            chain.push_back(page(&self.pool, &mut bytes));
            pages.push(bytes);
        }
        let was_empty = self.model.len() == 0;
        let taken = (self.pipe.room() / PAGE_BYTES).min(count);
        let written = self.pipe.lend(chain);
        let bytes: usize = pages[..taken].iter().map(Vec::len).sum();
        match taken {
            0 => assert_eq!(written, Written::NoRoom),
            _ => assert_eq!(written, Written::Bytes(bytes, news(was_empty))),
        }
        for page in &pages[..taken] {
            self.model
                .0
                .push_back(Piece::Loan(page.iter().copied().collect()));
        }
    }

    fn read(&mut self) {
        let limit = self.fresh().len();
        let mut buffer = Buffer::new(limit);
        let room = self.pipe.room();
        let got = self.pipe.read(&mut buffer).expect("the buffer takes all");
        if self.is_held || self.model.len() == 0 {
            assert_eq!(got, Read::Nothing);
            return;
        }
        let expected = self.model.read(limit);
        assert_eq!(buffer.bytes, expected);
        assert_eq!(got, Read::Bytes(expected.len(), self.room_news(room)));
    }

    /// Writers are told when an atomic write fits again, and only then.
    fn room_news(&self, before: usize) -> News {
        match before < ATOMIC_BYTES && self.pipe.room() >= ATOMIC_BYTES {
            true => News::Room,
            false => News::None,
        }
    }

    fn peek(&mut self) {
        let skip = self.random.below(self.model.len() + 2);
        let mut buffer = Buffer::new(self.fresh().len());
        let limit = buffer.room;
        self.pipe
            .peek(skip, &mut buffer)
            .expect("the buffer takes all");
        let all = self.model.bytes();
        let expected: Vec<u8> = all.iter().skip(skip).take(limit).copied().collect();
        assert_eq!(buffer.bytes, expected);
        let shared = self.pipe.share(skip, limit);
        let shared: Vec<u8> = shared.slices().flatten().copied().collect();
        assert_eq!(shared, self.expect_shared(skip, limit));
    }

    /// The loans from byte `skip` on, up to the first bytes that are none.
    fn expect_shared(&self, mut skip: usize, limit: usize) -> Vec<u8> {
        let mut shared = Vec::new();
        for piece in &self.model.0 {
            let from = skip.min(piece.bytes().len());
            skip -= from;
            if from == piece.bytes().len() {
                continue;
            }
            let Piece::Loan(bytes) = piece else { break };
            shared.extend(bytes.iter().skip(from));
        }
        shared.truncate(limit);
        shared
    }

    /// Holds, takes some, and lets go; others come between at times.
    fn splice(&mut self) {
        if !self.is_held {
            assert_eq!(self.pipe.hold(), self.model.len() != 0);
            self.is_held = self.model.len() != 0;
            return;
        }
        assert!(!self.pipe.hold(), "another has them");
        let count = self.random.below(self.model.len() + 1);
        let room = self.pipe.room();
        let told = self.pipe.skip(count);
        self.model.skip(count);
        assert_eq!(told, self.room_news(room));
        let expected = match self.model.len() {
            0 => News::None,
            _ => News::FirstBytes,
        };
        assert_eq!(self.pipe.release(), expected);
        self.is_held = false;
    }

    fn resize(&mut self) {
        let pages = 1 << self.random.below(4);
        let used = self.pipe.capacity() - self.pipe.room();
        let told = self.pipe.resize(pages, || Ok::<(), Refusal>(()));
        if used > pages * PAGE_BYTES {
            assert_eq!(told, Err(Refusal::DoesNotFit));
        } else {
            assert_eq!(told, Ok(News::Room));
            assert_eq!(self.pipe.capacity(), pages * PAGE_BYTES);
        }
    }
}

fn news(was_empty: bool) -> News {
    match was_empty {
        true => News::FirstBytes,
        false => News::MoreBytes,
    }
}

#[test]
fn random_histories_give_out_what_a_queue_of_bytes_would() {
    for_each_seed(25, |_, random| {
        let mut run = Run::new(random);
        for _ in 0..400 {
            run.step();
        }
    });
}
