//! One open file of a pipe: the file that a program reads, writes and polls.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use core::sync::atomic::Ordering;

use super::{ATOMIC_BYTES, Access, Pipe};
use crate::error::{Error, Result};
use crate::file::async_io::Owner;
use crate::file::{File, OpenFile};
use crate::fs::{FileType, Metadata};
use crate::io::{Sink, Source};
use crate::poll::{Events, Pollee};
use crate::user;

/// Bytes that could be read, stored as a C `int` (ioctl_fionread).
const FIONREAD: u32 = 0x541b;

/// One open file of a pipe.
pub struct PipeEnd {
    /// The pipe that it opens.
    pub pipe: Arc<Pipe>,
    access: Access,
    /// Writers there had been when it was opened: a reader sees a hang-up only after another.
    writers_before: u64,
}

impl PipeEnd {
    /// Opens `pipe`; closed when dropped.
    pub fn new(pipe: Arc<Pipe>, access: Access) -> Arc<Self> {
        let writers_before = pipe.writer_opens.load(Ordering::SeqCst);
        let had_writers = pipe.has_writers();
        pipe.enter(access);
        // One may have come between the two looks: then the difference wraps, and is one.
        let writers_before = writers_before.wrapping_sub(u64::from(had_writers));
        Arc::new(Self {
            pipe,
            access,
            writers_before,
        })
    }

    /// What it may do.
    pub fn access(&self) -> Access {
        self.access
    }

    fn poll_reader(&self) -> Events {
        let mut events = Events::empty();
        if self.pipe.len() != 0 {
            events |= Events::READABLE;
        }
        let opens = self.pipe.writer_opens.load(Ordering::SeqCst);
        if !self.pipe.has_writers() && opens != self.writers_before {
            events |= Events::HUP;
        }
        events
    }

    fn poll_writer(&self) -> Events {
        let mut events = Events::empty();
        if self.pipe.room() >= ATOMIC_BYTES {
            events |= Events::WRITABLE;
        }
        if !self.pipe.has_readers() {
            events |= Events::ERR;
        }
        events
    }
}

impl File for PipeEnd {
    fn read(&self, open: &OpenFile, to: &mut Sink<'_>) -> Result<usize> {
        if !self.access.contains(Access::READ) {
            return Err(Error::BadFile);
        }
        self.pipe.read(to, open.is_nonblocking())
    }

    fn write(&self, open: &OpenFile, from: &mut Source<'_>) -> Result<usize> {
        if !self.access.contains(Access::WRITE) {
            return Err(Error::BadFile);
        }
        self.pipe.write(from, open.flags())
    }

    fn poll(&self) -> Events {
        let mut events = Events::empty();
        if self.access.contains(Access::READ) {
            events |= self.poll_reader();
        }
        if self.access.contains(Access::WRITE) {
            events |= self.poll_writer();
        }
        events
    }

    fn pollee(&self) -> Option<&Pollee> {
        Some(&self.pipe.pollee)
    }

    fn async_owner(&self) -> Option<Owner> {
        Some(Owner::NOBODY)
    }

    fn ioctl(&self, _open: &OpenFile, request: u32, argument: u64) -> Result<usize> {
        match request {
            FIONREAD => {
                user::write(base::VirtAddr(argument), self.pipe.len() as u32)?;
                Ok(0)
            }
            _ => Err(Error::NotTerminal),
        }
    }

    fn metadata(&self) -> Result<Metadata> {
        let number = self.pipe.number;
        Ok(Metadata {
            number,
            ..Metadata::anonymous(FileType::Fifo)
        })
    }

    fn pipe_capacity(&self, wanted: Option<usize>) -> Option<Result<usize>> {
        Some(wanted.map_or_else(
            || Ok(self.pipe.capacity()),
            |bytes| self.pipe.set_capacity(bytes),
        ))
    }

    fn label(&self) -> String {
        format!("pipe:[{}]", self.pipe.number)
    }

    fn as_any(&self) -> &dyn core::any::Any {
        self
    }
}

impl Drop for PipeEnd {
    fn drop(&mut self) {
        self.pipe.leave(self.access);
    }
}
