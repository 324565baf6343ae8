//! FIFOs: pipes that have a name. Opening one waits for the other side (fifo(7)).
//!
//! The inode keeps the [`Pipe`]; each open file is a [`PipeEnd`] of its own. Who waits
//! compares counts of opens, not of openers: a partner that came and went again while
//! the thread slept still counts.

use alloc::sync::Arc;

use super::pipe::{Access, Pipe, PipeEnd};
use sync::poll::Events;
use sync::{Error, Result, Wait};
use vfs::Attachment;
use vfs::file::{FileRef, StatusFlags};

/// Opens a FIFO by the pipe that hangs on its inode; the first to open it hangs it there.
/// Blocks until the other side comes.
pub fn open_attached(attachment: &Attachment, flags: StatusFlags) -> Result<FileRef> {
    let pipe = attachment.get_or_insert(Arc::<Pipe>::default);
    Ok(open(&pipe, flags)?)
}

/// Opens a FIFO.
///
/// Errors: `NoSuchDevice` for a writer that will not wait and finds no reader;
/// `Interrupted`.
pub fn open(pipe: &Arc<Pipe>, flags: StatusFlags) -> Result<Arc<PipeEnd>> {
    let access = access_of(flags);
    let nonblocking = flags.contains(StatusFlags::NONBLOCK);
    if access == Access::WRITE && nonblocking && !pipe.flow.has_readers() {
        return Err(Error::NoSuchDevice);
    }
    let peers = Peers { pipe, access };
    let seen = peers.opens();
    // One that waits for this very open file may have come, written and gone before we look
    // again, and is in `seen` already.
    let was_there = peers.are_there();
    let end = PipeEnd::new(pipe.clone(), access);
    pipe.pollee.notify(Events::READABLE | Events::WRITABLE);
    if !was_there && access != Access::BOTH && !nonblocking {
        let came = || (peers.are_there() || peers.opens() != seen).then_some(());
        pipe.pollee.queue.wait(Wait::INTERRUPTIBLE, came)?;
    }
    Ok(end)
}

fn access_of(flags: StatusFlags) -> Access {
    if flags.contains(StatusFlags::RDWR) {
        Access::BOTH
    } else if flags.contains(StatusFlags::WRONLY) {
        Access::WRITE
    } else {
        Access::READ
    }
}

/// Those for whom an open file waits.
struct Peers<'a> {
    pipe: &'a Pipe,
    access: Access,
}

impl Peers<'_> {
    fn are_there(&self) -> bool {
        match self.access.reads {
            true => self.pipe.flow.has_writers(),
            false => self.pipe.flow.has_readers(),
        }
    }

    fn opens(&self) -> usize {
        match self.access.reads {
            true => self.pipe.flow.writer_opens(),
            false => self.pipe.flow.reader_opens(),
        }
    }
}
