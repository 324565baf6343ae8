//! What splice and tee need of a pipe: to look before they take, and to know the room.

use ::pipe::Borders;
use mbuf::Chain;
use mm::io::{Sink, Source};
use sync::{Error, Result, Wait};
use task::signal::broken_pipe;

use super::PipeEnd;
use vfs::file::StatusFlags;
use vfs::socket::Blocking;

impl PipeEnd {
    /// Copies bytes from the `skip`-th on to `to` and leaves them.
    pub(crate) fn look(&self, skip: usize, to: &mut [u8]) -> Result<usize> {
        Ok(self.pipe.flow.peek(skip, &mut Sink::kernel(to))?)
    }

    /// A share of the pages on loan from the `skip`-th byte on, at most `limit` bytes; empty
    /// if none comes there.
    pub(crate) fn share(&self, skip: usize, limit: usize) -> Chain {
        self.pipe.flow.share(skip, limit)
    }

    /// Waits until there are more than `skip` bytes, or none will come.
    pub(crate) fn wait_for_bytes(&self, skip: usize, blocking: Blocking) -> Result<()> {
        let pipe = &*self.pipe;
        let has_come = || pipe.flow.has_come(skip).then_some(());
        match blocking {
            Blocking::Never => has_come().ok_or(Error::WouldBlock),
            Blocking::MayWait => pipe.pollee.queue.wait(Wait::INTERRUPTIBLE, has_come),
        }
    }

    /// Bytes that go in now; at least one.
    pub(crate) fn room(&self, blocking: Blocking) -> Result<usize> {
        let pipe = &*self.pipe;
        let has_room = || pipe.flow.has_room(1).then_some(());
        match blocking {
            Blocking::Never => has_room().ok_or(Error::WouldBlock)?,
            Blocking::MayWait => pipe.pollee.queue.wait(Wait::INTERRUPTIBLE, has_room)?,
        }
        match pipe.flow.room() {
            0 if !pipe.flow.has_readers() => Err(broken_pipe()),
            room => Ok(room),
        }
    }

    /// Puts the first of `pages` in as they are, as many as there is room for; returns their
    /// bytes.
    pub(crate) fn lend(&self, pages: Chain) -> Result<usize> {
        self.pipe.lend(pages)
    }

    /// Puts as much in as fits, waiting for the first of it only.
    pub(crate) fn fill(&self, from: &mut Source<'_>, blocking: Blocking) -> Result<usize> {
        loop {
            self.room(blocking)?;
            // Another writer may have been faster.
            match self.pipe.try_write(from, 1, Borders::None)? {
                0 => {}
                count => return Ok(count),
            }
        }
    }

    /// Puts all of `bytes` in, waiting if another writer was faster.
    pub(crate) fn put(&self, bytes: &[u8]) -> Result<usize> {
        self.pipe
            .write(&mut Source::kernel(bytes), StatusFlags::empty())
    }
}
