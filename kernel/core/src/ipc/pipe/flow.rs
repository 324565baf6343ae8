//! Reads and writes of a pipe: bytes in and out, and who waits for what.
//!
//! Threads are woken at the edges only: readers when the ring was empty, writers when it
//! was too full for an atomic write. Observers hear of each write, because programs with
//! edge-triggered epoll rely on that.

use mbuf::Chain;

use super::{ATOMIC_BYTES, Pipe};
use crate::error::{Error, Result};
use crate::file::StatusFlags;
use crate::io::{Sink, Source};
use crate::ipc::broken_pipe;
use crate::poll::Events;
use crate::sync::Wait;

/// What a reader gets.
enum Taken {
    /// So many bytes.
    Bytes(usize),
    /// Nothing, because nothing is there.
    Nothing,
    /// Nothing, because another has what is there ([`super::hold`]).
    Held,
}

impl Pipe {
    /// Reads what is there, up to the end of a packet.
    fn try_read(&self, to: &mut Sink<'_>) -> Result<Taken> {
        let mut contents = self.contents.lock();
        if self.is_held() {
            return Ok(Taken::Held);
        }
        if contents.len() == 0 {
            return Ok(Taken::Nothing);
        }
        let count = contents.take(to)?;
        let room_before = self.room();
        self.publish(&contents);
        drop(contents);
        self.tell_writers(room_before);
        Ok(Taken::Bytes(count))
    }

    /// Bytes were taken out: writers go on once an atomic write fits again.
    pub(super) fn tell_writers(&self, room_before: usize) {
        if room_before < ATOMIC_BYTES && self.room() >= ATOMIC_BYTES {
            self.pollee.notify(Events::WRITABLE);
        }
    }

    /// Writes what fits; 0 if that is less than `least`.
    pub(super) fn try_write(
        &self,
        from: &mut Source<'_>,
        least: usize,
        as_packet: bool,
    ) -> Result<usize> {
        let mut contents = self.contents.lock();
        if !self.has_readers() {
            drop(contents);
            return Err(broken_pipe());
        }
        if contents.room() < least {
            return Ok(0);
        }
        let was_empty = contents.len() == 0;
        let count = contents.put(from, as_packet)?;
        self.publish(&contents);
        drop(contents);
        self.tell_readers(was_empty);
        Ok(count)
    }

    /// Takes the first of `pages`, as many as there is room for; returns their bytes.
    pub(super) fn lend(&self, pages: Chain) -> Result<usize> {
        let mut contents = self.contents.lock();
        if !self.has_readers() {
            drop(contents);
            return Err(broken_pipe());
        }
        let was_empty = contents.len() == 0;
        let count = contents.lend(pages);
        self.publish(&contents);
        drop(contents);
        if count != 0 {
            self.tell_readers(was_empty);
        }
        Ok(count)
    }

    /// Bytes were put in.
    fn tell_readers(&self, was_empty: bool) {
        if was_empty {
            self.pollee.notify(Events::READABLE);
        } else {
            self.pollee.notify_observers(Events::READABLE);
        }
    }

    pub(in crate::ipc) fn read(&self, to: &mut Sink<'_>, nonblocking: bool) -> Result<usize> {
        if to.remaining() == 0 {
            return Ok(0);
        }
        loop {
            let at_end = !self.has_writers();
            match self.try_read(to)? {
                Taken::Bytes(count) => return Ok(count),
                Taken::Nothing if at_end => return Ok(0),
                _ if nonblocking => return Err(Error::WouldBlock),
                _ => {}
            }
            let changed = || self.has_come(0).then_some(());
            self.pollee.queue.wait(Wait::INTERRUPTIBLE, changed)?;
        }
    }

    pub(super) fn write(&self, from: &mut Source<'_>, how: StatusFlags) -> Result<usize> {
        let mut done = 0;
        while from.remaining() != 0 {
            match self.write_some(from, how) {
                Ok(count) => done += count,
                Err(error) if done == 0 => return Err(error),
                Err(_) => break,
            }
        }
        Ok(done)
    }

    /// Writes something, waiting for room if need be.
    fn write_some(&self, from: &mut Source<'_>, how: StatusFlags) -> Result<usize> {
        let needed = from.remaining().min(ATOMIC_BYTES);
        let count = self.try_write(from, needed, how.contains(StatusFlags::DIRECT))?;
        if count != 0 {
            return Ok(count);
        }
        if how.contains(StatusFlags::NONBLOCK) {
            return Err(Error::WouldBlock);
        }
        let changed = || (self.room() >= needed || !self.has_readers()).then_some(());
        self.pollee.queue.wait(Wait::INTERRUPTIBLE, changed)?;
        Ok(0)
    }
}
