//! Reads and writes: bytes in and out, and who hears of it.

use base::Memory;
use base::lock::{Family, Flag, Lock};
use mbuf::Chain;

use crate::contents::Borders;
use crate::{ATOMIC_BYTES, Pipe, Sink, Source};

/// What others must be told, once the lock is let go.
#[must_use]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum News {
    /// Nothing.
    None,
    /// There is something to read where nothing was: threads that wait, and observers.
    FirstBytes,
    /// There is more to read: observers only, as no thread can wait for that.
    MoreBytes,
    /// An atomic write fits again.
    Room,
}

/// What a reader gets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Read {
    /// So many bytes.
    Bytes(usize, News),
    /// Nothing yet: nothing is there, or another has it ([`crate::hold`]).
    Nothing,
    /// Nothing, and nothing will come.
    End,
}

/// What became of a write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Written {
    /// So many bytes went in.
    Bytes(usize, News),
    /// There is not enough room.
    NoRoom,
    /// Nobody reads.
    Broken,
}

impl<F: Family, M: Memory> Pipe<F, M> {
    /// Reads what is there, up to the end of a packet.
    pub fn read<S: Sink>(&self, to: &mut S) -> Result<Read, S::Error> {
        // Looked at first: what the last writer wrote before it left is there then.
        let at_end = !self.has_writers();
        let mut contents = self.contents.lock();
        if self.held.get() {
            return Ok(Read::Nothing);
        }
        if contents.len() == 0 {
            return Ok(if at_end { Read::End } else { Read::Nothing });
        }
        let count = contents.take(to)?;
        let room_before = self.room();
        self.publish(&contents);
        Ok(Read::Bytes(count, self.news_of_room(room_before)))
    }

    /// Whether a read that found nothing is worth another try: there are more than `skip` bytes,
    /// or none will come.
    pub fn has_come(&self, skip: usize) -> bool {
        self.len() > skip || !self.has_writers() && !self.held.get()
    }

    /// Writes what fits, if that is `least` ([`Borders::least`]) or more. A packet has up to
    /// [`ATOMIC_BYTES`].
    pub fn write<S: Source>(
        &self,
        from: &mut S,
        least: usize,
        borders: Borders,
    ) -> Result<Written, S::Error> {
        let mut contents = self.contents.lock();
        if !self.has_readers() {
            return Ok(Written::Broken);
        }
        if contents.room() < least {
            return Ok(Written::NoRoom);
        }
        let was_empty = contents.len() == 0;
        let count = contents.put(from, borders)?;
        self.publish(&contents);
        Ok(Written::Bytes(count, news_of_bytes(was_empty)))
    }

    /// Whether a write that found no room is worth another try.
    pub fn has_room(&self, least: usize) -> bool {
        self.room() >= least || !self.has_readers()
    }

    /// Takes the first of `pages` on loan, as many as there is room for.
    pub fn lend(&self, pages: Chain) -> Written {
        let mut contents = self.contents.lock();
        if !self.has_readers() {
            return Written::Broken;
        }
        let was_empty = contents.len() == 0;
        match contents.lend(pages) {
            0 => Written::NoRoom,
            count => {
                self.publish(&contents);
                Written::Bytes(count, news_of_bytes(was_empty))
            }
        }
    }

    /// Copies bytes from the `skip`-th on to `to` and leaves them.
    pub fn peek<S: Sink>(&self, skip: usize, to: &mut S) -> Result<usize, S::Error> {
        self.contents.lock().peek(skip, to, usize::MAX)
    }

    /// A share of the pages on loan from the `skip`-th byte on, at most `limit` bytes; empty
    /// if none comes there.
    pub fn share(&self, skip: usize, limit: usize) -> Chain {
        self.contents.lock().share(skip, limit)
    }

    /// Bytes were taken out: writers go on once an atomic write fits again.
    pub(crate) fn news_of_room(&self, room_before: usize) -> News {
        match room_before < ATOMIC_BYTES && self.room() >= ATOMIC_BYTES {
            true => News::Room,
            false => News::None,
        }
    }
}

fn news_of_bytes(was_empty: bool) -> News {
    match was_empty {
        true => News::FirstBytes,
        false => News::MoreBytes,
    }
}
