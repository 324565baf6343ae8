//! FIFOs: pipes that have a name. Opening one waits for the other side (fifo(7)).
//!
//! The inode keeps the [`Pipe`]; each open file is a [`PipeEnd`] of its own. Who waits
//! compares counts of open files, not of openers: a partner that came and went again while
//! the thread slept still counts.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering};

use super::pipe::{Access, Pipe, PipeEnd};
use crate::error::{Error, Result};
use crate::file::StatusFlags;
use crate::poll::Events;
use crate::sync::Wait;

/// Opens a FIFO.
///
/// Errors: `NoSuchDevice` for a writer that will not wait and finds no reader;
/// `Interrupted`.
pub fn open(pipe: &Arc<Pipe>, flags: StatusFlags) -> Result<Arc<PipeEnd>> {
    let access = access_of(flags);
    let nonblocking = flags.contains(StatusFlags::NONBLOCK);
    if access == Access::WRITE && nonblocking && !pipe.has_readers() {
        return Err(Error::NoSuchDevice);
    }
    let (partners, is_there) = partners_of(pipe, access);
    let seen = partners.load(Ordering::SeqCst);
    // One that waits for this very open file may have come, written and gone before we look
    // again, and is in `seen` already.
    let was_there = is_there(pipe);
    let end = PipeEnd::new(pipe.clone(), access);
    pipe.pollee.notify(Events::READABLE | Events::WRITABLE);
    if !was_there && access != Access::READ | Access::WRITE && !nonblocking {
        let came = || (is_there(pipe) || partners.load(Ordering::SeqCst) != seen).then_some(());
        pipe.pollee.queue.wait(Wait::INTERRUPTIBLE, came)?;
    }
    Ok(end)
}

fn access_of(flags: StatusFlags) -> Access {
    if flags.contains(StatusFlags::RDWR) {
        Access::READ | Access::WRITE
    } else if flags.contains(StatusFlags::WRONLY) {
        Access::WRITE
    } else {
        Access::READ
    }
}

fn partners_of(pipe: &Pipe, access: Access) -> (&AtomicU64, fn(&Pipe) -> bool) {
    if access == Access::READ {
        (&pipe.writer_opens, Pipe::has_writers)
    } else {
        (&pipe.reader_opens, Pipe::has_readers)
    }
}
