//! One open file of a pipe: the file that a program reads, writes and polls.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;

use ::pipe::OpenedAt;
use mm::io::{Sink, Source};
use mm::user;
use sync::poll::{Events, Pollee};
use sync::{Error, Result};

use super::{Access, Pipe};
use vfs::file::async_io::Owner;
use vfs::file::{File, OpenFile};
use vfs::{FileType, Metadata};

/// Bytes that could be read, stored as a C `int` (ioctl_fionread).
const FIONREAD: u32 = 0x541b;

/// One open file of a pipe.
pub struct PipeEnd {
    /// The pipe that it opens.
    pub pipe: Arc<Pipe>,
    access: Access,
    opened: OpenedAt,
}

impl PipeEnd {
    /// Opens `pipe`; closed when dropped.
    pub fn new(pipe: Arc<Pipe>, access: Access) -> Arc<Self> {
        let opened = pipe.flow.enter(access);
        Arc::new(Self {
            pipe,
            access,
            opened,
        })
    }

    /// What it may do.
    pub fn access(&self) -> Access {
        self.access
    }
}

impl File for PipeEnd {
    fn read(&self, open: &OpenFile, to: &mut Sink<'_>) -> Result<usize> {
        if !self.access.reads {
            return Err(Error::BadFile);
        }
        self.pipe.read(to, open.is_nonblocking())
    }

    fn write(&self, open: &OpenFile, from: &mut Source<'_>) -> Result<usize> {
        if !self.access.writes {
            return Err(Error::BadFile);
        }
        self.pipe.write(from, open.flags())
    }

    fn poll(&self) -> Events {
        let sight = self.pipe.flow.look(self.access, &self.opened);
        let mut events = Events::empty();
        events.set(Events::READABLE, sight.is_readable);
        events.set(Events::WRITABLE, sight.is_writable);
        events.set(Events::HUP, sight.is_hung_up);
        events.set(Events::ERR, sight.is_broken);
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
                user::write(base::VirtAddr(argument), self.pipe.flow.len() as u32)?;
                Ok(0)
            }
            _ => Err(Error::NotTerminal),
        }
    }

    fn metadata(&self) -> Result<Metadata> {
        let (number, owner) = (self.pipe.number, self.pipe.owner);
        Ok(Metadata {
            number,
            mode: owner.mode,
            uid: owner.uid,
            gid: owner.gid,
            ..Metadata::anonymous(FileType::Fifo)
        })
    }

    fn pipe_capacity(&self, wanted: Option<usize>) -> Option<Result<usize>> {
        Some(wanted.map_or_else(
            || Ok(self.pipe.flow.capacity()),
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
        self.pipe.flow.leave(self.access);
        let events = Events::HUP | Events::ERR | Events::READABLE | Events::WRITABLE;
        self.pipe.pollee.notify(events);
    }
}
