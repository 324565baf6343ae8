//! /proc/PID/mem: the memory of a process as a file, whose offsets are addresses.

use alloc::sync::Arc;

use base::VirtAddr;
use mm::io::{Sink, Source};
use mm::{AddressSpace, Reach};
use sync::{Error, Result};

use super::task::Subject;
use vfs::file::{File, FileRef, OpenFile};
use vfs::{FileType, Inode, Metadata};

/// The inode; who may open it, `super::guard` says.
pub struct Memory {
    metadata: Metadata,
    subject: Subject,
}

impl Memory {
    /// That of a process.
    pub fn new(metadata: Metadata, subject: &Subject) -> Arc<Self> {
        let subject = subject.clone();
        Arc::new(Self { metadata, subject })
    }
}

impl File for Memory {
    fn metadata(&self) -> Result<Metadata> {
        Ok(self.metadata)
    }

    fn as_any(&self) -> &dyn core::any::Any {
        self
    }
}

impl Inode for Memory {
    fn kind(&self) -> FileType {
        FileType::Regular
    }

    fn open(&self) -> Option<Result<FileRef>> {
        let subject = self.subject.clone();
        Some(Ok(Arc::new(Opened(subject))))
    }

    fn truncate(&self, _size: u64) -> Result<()> {
        Ok(())
    }
}

struct Opened(Subject);

impl Opened {
    /// Whether there is memory: not any more of a process that has ended.
    fn space(&self) -> Option<Arc<AddressSpace>> {
        self.0.process.first_thread()?;
        self.0.space().ok()
    }
}

/// Moves pieces until there is nothing left; an error shows if nothing went before.
fn in_pieces(mut step: impl FnMut(u64) -> Result<usize>) -> Result<usize> {
    let mut done = 0;
    loop {
        match step(done as u64) {
            Ok(0) => return Ok(done),
            Ok(count) => done += count,
            Err(Error::BadAddress) if done == 0 => return Err(Error::Io),
            Err(error) if done == 0 => return Err(error),
            Err(_) => return Ok(done),
        }
    }
}

impl File for Opened {
    fn read_at(&self, _open: &OpenFile, offset: u64, to: &mut Sink<'_>) -> Result<usize> {
        let Some(space) = self.space() else {
            return Ok(0);
        };
        in_pieces(|done| space.peek_piece(VirtAddr(offset.wrapping_add(done)), usize::MAX, to))
    }

    fn write_at(&self, _open: &OpenFile, offset: u64, from: &mut Source<'_>) -> Result<usize> {
        let Some(space) = self.space() else {
            return Ok(0);
        };
        in_pieces(|done| {
            let at = VirtAddr(offset.wrapping_add(done));
            space.poke_piece(at, usize::MAX, from, Reach::Tracer)
        })
    }

    fn is_seekable(&self) -> bool {
        true
    }

    fn as_any(&self) -> &dyn core::any::Any {
        self
    }
}
