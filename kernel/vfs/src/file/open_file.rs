//! One open file description: position, status flags, owner of its signals.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use bitflags::bitflags;
use mach::sync::Spin;
use mm::MappedFile;
use mm::io::{Sink, Source};
use sync::{Error, Mutex, Result};

use super::access_times;
use super::async_io::{self, AsyncIo};
use super::{Fd, FileRef, size_limit};
use crate::inode::locks::Owner;
use crate::inode::{notify, set_ids};
use crate::mount::Writer;
use crate::{Change, FileType, InodeRef, Metadata, Path, Timestamp};

bitflags! {
    /// Status flags of an open file; the bits are Linux's own (`O_*` on x86-64).
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct StatusFlags: u32 {
        /// Opened for writing only.
        const WRONLY = 0o1;
        /// Opened for reading and writing.
        const RDWR = 0o2;
        /// Does not make a terminal the controlling one; not kept.
        const NOCTTY = 0o400;
        /// Every write goes to the end.
        const APPEND = 0o2000;
        /// Calls do not block.
        const NONBLOCK = 0o4000;
        /// Writes reach the disk's data.
        const DSYNC = 0o10000;
        /// Signals on readiness.
        const ASYNC = 0o20000;
        /// No cache.
        const DIRECT = 0o40000;
        /// Offsets of 64 bits; always so here.
        const LARGEFILE = 0o100000;
        /// It had to be a directory.
        const DIRECTORY = 0o200000;
        /// A link at the end was not followed.
        const NOFOLLOW = 0o400000;
        /// Reads do not set the access time.
        const NOATIME = 0o1000000;
        /// The open file names a place in the tree only.
        const PATH = 0o10000000;
    }
}

impl StatusFlags {
    /// What `fcntl(F_SETFL)` may change.
    pub const CHANGEABLE: Self = Self::APPEND
        .union(Self::NONBLOCK)
        .union(Self::ASYNC)
        .union(Self::DIRECT)
        .union(Self::NOATIME);
}

/// Openings that exist now. A figure of the machine, limited as a whole (`file-max`).
static OPENINGS: AtomicUsize = AtomicUsize::new(0);

/// An open file (POSIX' term).
pub struct OpenFile {
    /// The thing that is open.
    pub file: FileRef,
    /// Whether that has no positions; it stays so.
    is_stream: bool,
    flags: AtomicU32,
    /// The position of the next `read` or `write`; held while one is under way.
    pub position: Mutex<u64>,
    /// Where it was opened; `None` for pipes, sockets and their like.
    pub path: Option<Path>,
    async_io: Spin<Option<Arc<AsyncIo>>>,
    /// Up to which failed write-back of the file this one has heard.
    failures_heard: Spin<u32>,
    /// Keeps the mount from becoming read-only.
    _writer: Option<Writer>,
}

impl OpenFile {
    /// The open file that something was mapped through.
    pub fn of_mapping(mapped: &MappedFile) -> Option<&Self> {
        mapped.downcast_ref()
    }

    /// Opens `file` at position 0.
    pub fn new(file: FileRef, flags: StatusFlags) -> Arc<Self> {
        Self::make(file, flags, None)
    }

    /// Opens what is at `path`.
    pub fn at(file: FileRef, flags: StatusFlags, path: Path) -> Arc<Self> {
        Self::make(file, flags, Some(path))
    }

    /// How many there are in the system.
    pub fn count() -> usize {
        OPENINGS.load(Ordering::Relaxed)
    }

    /// How many there may be for all who are no administrators (Linux's fs.file-max): as many as
    /// take a tenth of memory at a kilobyte each, and 8192 on small machines.
    pub fn most() -> usize {
        const OPENING_BYTES: u64 = 1024;
        let bytes = mach::mem::total_frames() * base::PAGE_BYTES as u64;
        (bytes / 10 / OPENING_BYTES).max(8192) as usize
    }

    fn make(file: FileRef, flags: StatusFlags, path: Option<Path>) -> Arc<Self> {
        OPENINGS.fetch_add(1, Ordering::Relaxed);
        let writer = path.as_ref().filter(|path| changes(path, flags));
        Arc::new(Self {
            _writer: writer.map(|path| Writer::count(&path.mount)),
            is_stream: !file.is_seekable(),
            failures_heard: Spin::new(file.failures_heard()),
            file,
            flags: AtomicU32::new(flags.difference(StatusFlags::NOCTTY).bits()),
            position: Mutex::new(0),
            path,
            async_io: Spin::new(None),
        })
    }

    /// The inode of a file that has a name.
    pub fn inode(&self) -> Option<&InodeRef> {
        self.path.as_ref().map(Path::inode)
    }

    /// Whether it is of a regular file.
    pub fn is_regular(&self) -> bool {
        self.inode()
            .is_some_and(|inode| inode.kind() == FileType::Regular)
    }

    /// What stat(2) says of it.
    pub fn metadata(&self) -> Result<Metadata> {
        match self.inode() {
            Some(inode) => inode.metadata(),
            None => self.file.metadata(),
        }
    }

    /// Where it ends: a disk's node knows nothing of the disk's size.
    ///
    /// Errors: `NotSeekable` for what has no name.
    pub fn size(&self) -> Result<u64> {
        let inode = self.inode().ok_or(Error::NotSeekable)?;
        match inode.kind() {
            FileType::BlockDevice => Ok(self.file.metadata()?.size),
            _ => Ok(inode.metadata()?.size),
        }
    }

    /// fsync(2), and with `data_only` fdatasync(2).
    ///
    /// Errors: `Invalid` for what keeps no data. `Io` if bytes could not be brought out since this
    /// open file last told, in whosever name that was tried.
    pub fn bring_out(&self, data_only: bool) -> Result<()> {
        let inode = self.inode().ok_or(Error::Invalid)?;
        match inode.kind() {
            FileType::Regular | FileType::Directory => {
                let synced = inode.sync(data_only);
                synced.and(self.tell_failures())
            }
            _ => self.file.bring_out(),
        }
    }

    /// Errors: `Io` if bytes could not be brought out since this open file last told, in whosever name that was tried.
    pub fn tell_failures(&self) -> Result<()> {
        match self.file.tell_failures(&mut self.failures_heard.lock()) {
            true => Err(Error::Io),
            false => Ok(()),
        }
    }

    /// The status flags now.
    pub fn flags(&self) -> StatusFlags {
        StatusFlags::from_bits_retain(self.flags.load(Ordering::Relaxed))
    }

    /// Sets those flags that may change after the open file.
    pub fn set_flags(&self, flags: StatusFlags) {
        let kept = self.flags().difference(StatusFlags::CHANGEABLE);
        self.flags.store(
            (kept | flags & StatusFlags::CHANGEABLE).bits(),
            Ordering::Relaxed,
        );
    }

    /// Whether a call should return [`Error::WouldBlock`] instead of blocking.
    pub fn is_nonblocking(&self) -> bool {
        self.flags().contains(StatusFlags::NONBLOCK)
    }

    /// Whether it was opened for reading.
    pub fn is_readable(&self) -> bool {
        !self
            .flags()
            .intersects(StatusFlags::WRONLY | StatusFlags::PATH)
    }

    /// Whether it was opened for writing.
    pub fn is_writable(&self) -> bool {
        self.flags()
            .intersects(StatusFlags::WRONLY | StatusFlags::RDWR)
            && !self.flags().contains(StatusFlags::PATH)
    }

    /// read(2): at the position, which moves on.
    pub fn read(&self, to: &mut Sink<'_>) -> Result<usize> {
        if !self.is_readable() {
            return Err(Error::BadFile);
        }
        if self.is_stream {
            let count = self.file.read(self, to)?;
            self.note_stream(count, access_times::note_read);
            return Ok(count);
        }
        let count = match self.file.moves_position() {
            true => {
                let mut position = self.position.lock();
                let count = self.file.read_at(self, *position, to)?;
                *position += count as u64;
                count
            }
            false => self.file.read_at(self, 0, to)?,
        };
        self.note_read();
        Ok(count)
    }

    /// write(2): at the position, which moves on; `APPEND` is the file's matter.
    pub fn write(&self, from: &mut Source<'_>) -> Result<usize> {
        if !self.is_writable() {
            return Err(Error::BadFile);
        }
        if self.is_stream {
            let count = self.file.write(self, from)?;
            self.note_stream(count, Self::note_written);
            return Ok(count);
        }
        let mut position = self.position.lock();
        self.obey_size_limit(*position, from)?;
        self.shed_set_ids()?;
        let count = self.file.write_at(self, *position, from)?;
        *position = self.position_after_write(*position, count)?;
        drop(position);
        notify::written(self);
        Ok(count)
    }
}

impl OpenFile {
    /// Who gets its signals, and which; `None` as long as nobody chose.
    pub fn async_io(&self) -> Option<Arc<AsyncIo>> {
        self.async_io.lock().clone()
    }

    /// The same, for who chooses.
    ///
    /// Errors: `OutOfMemory`.
    pub fn make_async_io(&self) -> Result<Arc<AsyncIo>> {
        if let Some(known) = self.async_io() {
            return Ok(known);
        }
        let new = AsyncIo::new()?;
        Ok(self.async_io.lock().get_or_insert(new).clone())
    }

    /// Says who gets the signals.
    ///
    /// Errors: `NoSuchProcess`, `OutOfMemory`.
    pub fn set_owner(&self, owner: async_io::Owner) -> Result<()> {
        self.make_async_io()?.set_owner(self, owner)
    }

    /// Sets O_ASYNC, through the descriptor `fd`; a file that sends no signals only keeps it.
    ///
    /// Errors: `OutOfMemory`.
    pub fn set_async(&self, on: bool, fd: Fd) -> Result<()> {
        if on != self.flags().contains(StatusFlags::ASYNC)
            && let Some(owner) = self.file.async_owner()
        {
            let signals = self.make_async_io()?;
            if on && owner != async_io::Owner::NOBODY && signals.owner().id == 0 {
                signals.set_owner(self, owner)?;
            }
            signals.turn(self, on, fd);
        }
        let mut flags = self.flags();
        flags.set(StatusFlags::ASYNC, on);
        self.set_flags(flags);
        Ok(())
    }

    /// pread(2): at `offset`; the position stays.
    pub fn read_at(&self, offset: u64, to: &mut Sink<'_>) -> Result<usize> {
        if !self.is_readable() {
            return Err(Error::BadFile);
        }
        let count = self.file.read_at(self, offset, to)?;
        self.note_read();
        Ok(count)
    }

    /// A program has read bytes, whichever way.
    pub fn note_read(&self) {
        access_times::note_read(self);
        notify::read(self);
    }

    /// `count` bytes went through; if it is a FIFO, its node has times.
    fn note_stream(&self, count: usize, note: fn(&Self)) {
        let is_fifo = |path: &Path| path.dentry.kind() == FileType::Fifo;
        if count > 0 && self.path.as_ref().is_some_and(is_fifo) {
            note(self);
        }
    }

    /// A program has written bytes that the inode does not see; times that cannot be set stay.
    fn note_written(&self) {
        let written = Change {
            modified: Some(Timestamp::now()),
            ..Change::default()
        };
        let _ = self.inode().map(|inode| inode.change(&written));
    }

    /// pwrite(2): at `offset`; the position stays.
    pub fn write_at(&self, offset: u64, from: &mut Source<'_>) -> Result<usize> {
        if !self.is_writable() {
            return Err(Error::BadFile);
        }
        self.obey_size_limit(offset, from)?;
        self.shed_set_ids()?;
        let count = self.file.write_at(self, offset, from)?;
        notify::written(self);
        Ok(count)
    }

    /// Cuts off what the program may not write at `offset` of a regular file.
    fn obey_size_limit(&self, offset: u64, from: &mut Source<'_>) -> Result<()> {
        if !self.is_regular() {
            return Ok(());
        }
        let start = || match self.flags().contains(StatusFlags::APPEND) {
            true => self.file.metadata().map(|file| file.size),
            false => Ok(offset),
        };
        let allowed = size_limit::check_write(start, from.remaining())?;
        from.cut_to(allowed);
        Ok(())
    }

    /// A program gave up one of its descriptors: its record locks on the file end.
    pub fn flush(&self, table: usize) {
        self.file.flush();
        if let Some(locks) = self.inode().and_then(|inode| inode.locks()) {
            locks.release_program(table);
        }
    }

    /// What the file was made to run as ends with what it holds.
    fn shed_set_ids(&self) -> Result<()> {
        self.inode().map_or(Ok(()), |inode| set_ids::shed(&**inode))
    }

    /// What stands for this open file as the owner of locks.
    pub fn lock_owner(&self) -> Owner {
        Owner::Description(core::ptr::from_ref(self).addr())
    }

    /// Where the next call goes on: an append ends at the end of the file.
    fn position_after_write(&self, before: u64, count: usize) -> Result<u64> {
        if !self.file.moves_position() {
            return Ok(before);
        }
        match self.flags().contains(StatusFlags::APPEND) {
            true => Ok(self.file.metadata()?.size),
            false => Ok(before + count as u64),
        }
    }
}

/// Whether an open file with these flags may change what is at `path`.
fn changes(path: &Path, flags: StatusFlags) -> bool {
    flags.intersects(StatusFlags::WRONLY | StatusFlags::RDWR)
        && !flags.contains(StatusFlags::PATH)
        && path.dentry.kind() == FileType::Regular
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        self.file.clone().close(self);
        if let Some(locks) = self.inode().and_then(|inode| inode.locks()) {
            locks.release_description(core::ptr::from_ref(self).addr());
        }
        notify::closed(self);
        if let Some(async_io) = self.async_io() {
            async_io.end(self);
        }
        OPENINGS.fetch_sub(1, Ordering::Relaxed);
    }
}
