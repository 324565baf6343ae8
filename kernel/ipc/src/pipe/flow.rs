//! Reads and writes that wait, and what they mean to programs.

use ::pipe::{Borders, Read, Written};
use mbuf::Chain;
use mm::io::{Sink, Source};
use sync::{Error, Result, Wait};
use task::signal::broken_pipe;

use super::Pipe;
use vfs::file::StatusFlags;

impl Pipe {
    /// Writes what fits; 0 if that is less than `least`.
    pub(super) fn try_write(
        &self,
        from: &mut Source<'_>,
        least: usize,
        borders: Borders,
    ) -> Result<usize> {
        self.outcome(self.flow.write(from, least, borders)?)
    }

    /// Takes the first of `pages`, as many as there is room for; returns their bytes.
    pub(super) fn lend(&self, pages: Chain) -> Result<usize> {
        self.outcome(self.flow.lend(pages))
    }

    fn outcome(&self, written: Written) -> Result<usize> {
        match written {
            Written::NoRoom => Ok(0),
            Written::Broken => Err(broken_pipe()),
            Written::Bytes(count, news) => {
                self.tell(news);
                Ok(count)
            }
        }
    }

    pub(crate) fn read(&self, to: &mut Sink<'_>, nonblocking: bool) -> Result<usize> {
        if to.remaining() == 0 {
            return Ok(0);
        }
        loop {
            match self.flow.read(to)? {
                Read::Bytes(count, news) => {
                    self.tell(news);
                    return Ok(count);
                }
                Read::End => return Ok(0),
                Read::Nothing if nonblocking => return Err(Error::WouldBlock),
                Read::Nothing => {}
            }
            let changed = || self.flow.has_come(0).then_some(());
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
        let borders = match how.contains(StatusFlags::DIRECT) {
            true => Borders::Packet,
            false => Borders::None,
        };
        let needed = borders.least(from.remaining());
        let count = self.try_write(from, needed, borders)?;
        if count != 0 {
            return Ok(count);
        }
        if how.contains(StatusFlags::NONBLOCK) {
            return Err(Error::WouldBlock);
        }
        let changed = || self.flow.has_room(needed).then_some(());
        self.pollee.queue.wait(Wait::INTERRUPTIBLE, changed)?;
        Ok(0)
    }
}
