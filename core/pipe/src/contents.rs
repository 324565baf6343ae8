//! What is in a pipe: bytes in a ring, pages on loan between them, and where packets lie.
//!
//! A write with `O_DIRECT` is a packet: a read takes no more than one, and what it has no
//! room for is lost (pipe(2)). Other writes have no borders, and loans have none. Packets
//! and loans are known by their positions in the ring, which only grow.
//!
//! Not here: how they are looked at (`pieces`), who waits, and what they look at meanwhile
//! (`flow`).

use alloc::collections::VecDeque;

use base::{Memory, PAGE_BYTES};
use mbuf::Chain;

use crate::loans::Loans;
use crate::{ATOMIC_BYTES, ByteRing, Refusal, Sink, Source};

/// A write of its own in the ring (`O_DIRECT`), by position.
struct Packet {
    start: u64,
    end: u64,
}

/// Whether a write is a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Borders {
    /// Its bytes run on into those of others.
    None,
    /// A read ends where it ends.
    Packet,
}

impl Borders {
    /// Bytes for which there must be room before a write of `count` begins: up to [`ATOMIC_BYTES`]
    /// go in together, and a packet takes a page.
    pub fn least(self, count: usize) -> usize {
        match self {
            Self::None => count.min(ATOMIC_BYTES),
            Self::Packet => PAGE_BYTES,
        }
    }
}

/// What the pipe's lock guards.
pub(crate) struct Contents<M: Memory> {
    pub(crate) ring: ByteRing<M>,
    pub(crate) loans: Loans,
    packets: VecDeque<Packet>,
}

impl<M: Memory> Contents<M> {
    /// Nothing, in a ring of `pages` pages.
    pub(crate) fn new(pages: usize) -> Self {
        Self {
            ring: ByteRing::new(pages),
            loans: Loans::default(),
            packets: VecDeque::new(),
        }
    }

    /// Bytes that could be read.
    pub(crate) fn len(&self) -> usize {
        self.ring.len() + self.loans.len()
    }

    /// Bytes of the capacity that are taken: what was read frees a page at a time, and a packet
    /// and a loan take a page each, as in Linux.
    pub(crate) fn used(&self) -> usize {
        let read = (self.ring.head() % PAGE_BYTES as u64) as usize;
        let bytes = self.ring.len();
        let packets: u64 = self.packets.iter().map(|one| one.end - one.start).sum();
        let ring = match (bytes, packets as usize) {
            (0, _) => 0,
            (bytes, 0) => read + bytes,
            (bytes, of_packets) => {
                let others = bytes.saturating_sub(of_packets);
                others.next_multiple_of(PAGE_BYTES) + self.packets.len() * PAGE_BYTES
            }
        };
        ring + self.loans.footprint()
    }

    /// Bytes that fit when it is empty.
    pub(crate) fn capacity(&self) -> usize {
        self.ring.capacity()
    }

    /// Bytes that still fit.
    pub(crate) fn room(&self) -> usize {
        self.capacity().saturating_sub(self.used())
    }

    /// Takes bytes from `from`, as far as they fit; returns how many.
    pub(crate) fn put<S: Source>(&mut self, from: &mut S, how: Borders) -> Result<usize, S::Error> {
        let room = self.room();
        if how == Borders::None {
            return self.ring.put(from, room);
        }
        M::reserve(|| self.packets.try_reserve(1)).map_err(Refusal::from)?;
        let wanted = from.remaining().min(ATOMIC_BYTES).min(room);
        let count = self.ring.put(from, wanted)?;
        if count < wanted {
            self.ring.take_back(count);
            return Err(Refusal::Torn.into());
        }
        let end = self.ring.tail();
        self.packets.push_back(Packet {
            start: end - count as u64,
            end,
        });
        Ok(count)
    }

    /// Takes the first of `pages`, as many as there is room for; returns their bytes.
    pub(crate) fn lend(&mut self, mut pages: Chain) -> usize {
        let before = self.loans.len();
        while self.room() >= PAGE_BYTES
            && let Some(part) = pages.pop_front()
        {
            self.loans.push(self.ring.tail(), part);
        }
        self.loans.len() - before
    }

    /// Gives bytes to `to`, up to the end of a packet; returns how many.
    pub(crate) fn take<S: Sink>(&mut self, to: &mut S) -> Result<usize, S::Error> {
        // Nearly every pipe has nothing but bytes.
        if self.packets.is_empty() && self.loans.len() == 0 {
            return self.ring.take(to, usize::MAX);
        }
        let (packet, before) = self.next_packet();
        if before == 0 {
            let wanted = packet.min(to.remaining());
            let count = self.peek(0, to, packet)?;
            if count < wanted {
                return Err(Refusal::Torn.into());
            }
            self.skip(packet);
            return Ok(count);
        }
        let count = self.peek(0, to, before)?;
        self.skip(count);
        Ok(count)
    }

    /// Bytes that the next packet has, and those in front of it; all are if there is none.
    fn next_packet(&self) -> (usize, usize) {
        let Some(packet) = self.packets.front() else {
            return (0, usize::MAX);
        };
        let head = self.ring.head();
        let len = packet.end - packet.start.max(head);
        let bytes = packet.start.saturating_sub(head);
        let before = self.loans.len_before(packet.start);
        (len as usize, bytes as usize + before)
    }

    /// Drops the next `count` bytes, or all if there are fewer.
    pub(crate) fn skip(&mut self, count: usize) {
        let mut left = count.min(self.len());
        while left != 0 {
            left -= match self.bytes_before_loan() {
                0 => self.loans.skip(left),
                bytes => {
                    let bytes = bytes.min(left);
                    self.ring.skip(bytes);
                    bytes
                }
            };
        }
        let head = self.ring.head();
        while self.packets.front().is_some_and(|first| first.end <= head) {
            self.packets.pop_front();
        }
    }

    /// Bytes of the ring in front of the first loan; all are if there is none.
    fn bytes_before_loan(&self) -> usize {
        let bytes = |place: u64| place.saturating_sub(self.ring.head()) as usize;
        let first = self.loans.first();
        first.map_or(self.ring.len(), |loan| bytes(loan.place))
    }

    /// Makes the ring `pages` pages large; [`Refusal::DoesNotFit`] if the contents do not.
    pub(crate) fn resize(&mut self, pages: usize) -> Result<(), Refusal> {
        if self.used() > pages * PAGE_BYTES {
            return Err(Refusal::DoesNotFit);
        }
        self.ring.resize(pages)
    }

    /// Drops everything.
    pub(crate) fn clear(&mut self) {
        self.skip(usize::MAX);
    }
}
