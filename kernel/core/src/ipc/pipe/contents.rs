//! What is in a pipe: a ring of bytes, and where in it packets lie.
//!
//! A write with `O_DIRECT` is a packet: a read takes no more than one, and what it has no
//! room for is lost (pipe(2)). Other writes have no borders. A packet is known by its
//! positions in the ring, which only grow.
//! Not here: who waits, and what they look at meanwhile (`flow`).

use alloc::collections::VecDeque;

use super::ATOMIC_BYTES;
use crate::error::{Error, Result};
use crate::io::{Sink, Source};
use crate::ipc::ring::ByteRing;

/// A write of its own in the ring (`O_DIRECT`), by position.
struct Packet {
    start: u64,
    end: u64,
}

/// What the pipe's lock guards.
pub(super) struct Contents {
    pub(super) ring: ByteRing,
    packets: VecDeque<Packet>,
}

impl Contents {
    /// Nothing, in a ring of `pages` pages.
    pub(super) fn new(pages: usize) -> Self {
        Self {
            ring: ByteRing::new(pages),
            packets: VecDeque::new(),
        }
    }

    /// Takes bytes from `from`, as far as they fit; returns how many.
    pub(super) fn put(&mut self, from: &mut Source<'_>, as_packet: bool) -> Result<usize> {
        if !as_packet {
            return self.ring.put(from, usize::MAX);
        }
        let count = self.ring.put(from, ATOMIC_BYTES)?;
        let end = self.ring.tail();
        self.packets.push_back(Packet {
            start: end - count as u64,
            end,
        });
        Ok(count)
    }

    /// Gives bytes to `to`, up to the end of a packet; returns how many.
    pub(super) fn take(&mut self, to: &mut Sink<'_>) -> Result<usize> {
        let head = self.ring.head();
        match self.packets.front() {
            None => self.ring.take(to, usize::MAX),
            Some(packet) if packet.start > head => {
                self.ring.take(to, (packet.start - head) as usize)
            }
            Some(packet) => {
                let whole = (packet.end - head) as usize;
                let count = self.ring.peek(0, to, whole)?;
                self.ring.skip(whole);
                self.packets.pop_front();
                Ok(count)
            }
        }
    }

    /// Drops the next `count` bytes, whatever packets they belong to.
    pub(super) fn skip(&mut self, count: usize) {
        self.ring.skip(count);
        let head = self.ring.head();
        self.packets.retain(|packet| packet.end > head);
    }

    /// Makes the ring `pages` pages large; [`Error::Busy`] if its contents do not fit, or
    /// have borders.
    pub(super) fn resize(&mut self, pages: usize) -> Result<()> {
        if !self.packets.is_empty() {
            return Err(Error::Busy);
        }
        self.ring.resize(pages)
    }

    /// Drops everything.
    pub(super) fn clear(&mut self) {
        self.skip(usize::MAX);
    }
}
