//! Open files: what a descriptor stands for.
//!
//! Three objects, as in Unix: a [`File`] is the thing itself (a regular file, a pipe end,
//! a socket); an [`OpenFile`] is one open file description of it, with position and status flags,
//! shared by `dup` and `fork`; an [`FdTable`] gives small numbers to open files.
//! Not here: names (`fs`) and waiting for several files at once (`poll`).

pub mod access_times;
pub mod async_io;
pub mod directory;
mod inode_number;
mod open_file;
pub mod poll;
mod signals;
pub mod size_limit;
pub mod socket;
mod table;
mod text;
pub mod transfer;

use alloc::string::String;
use alloc::sync::Arc;
use core::ops::Range;

use async_io::Owner;
pub use inode_number::{next_namespace_number, next_number};
use mm::MemoryObject;
use mm::io::{Sink, Source};
pub use open_file::{OpenFile, StatusFlags};
pub use signals::{Signals, register_signals};
use sync::poll::{Events, Pollee};
use sync::{Error, Result};
pub use table::{Fd, FdTable};

use crate::{FileType, Metadata};
use socket::Socket;
pub use text::Text;
use transfer::Transfer;

/// What can be opened. Each method has the answer of a thing that cannot do it.
///
/// `open` is the open file through which the call came: it carries the status flags
/// (`O_NONBLOCK`, `O_APPEND`, ...).
pub trait File: Send + Sync {
    /// Reads at the file's own position (streams) into `to`; 0 at the end.
    fn read(&self, _open: &OpenFile, _to: &mut Sink<'_>) -> Result<usize> {
        Err(Error::Invalid)
    }

    /// Writes at the file's own position (streams) from `from`.
    fn write(&self, _open: &OpenFile, _from: &mut Source<'_>) -> Result<usize> {
        Err(Error::Invalid)
    }

    /// Reads at `offset`; files with positions implement this and not `read`.
    fn read_at(&self, _open: &OpenFile, _offset: u64, _to: &mut Sink<'_>) -> Result<usize> {
        Err(Error::NotSeekable)
    }

    /// Writes at `offset`; files with positions implement this and not `write`.
    fn write_at(&self, _open: &OpenFile, _offset: u64, _from: &mut Source<'_>) -> Result<usize> {
        Err(Error::NotSeekable)
    }

    /// Begins a transfer; `transfer.end` hears of its end, perhaps before this returns. `None` if the
    /// caller has to wait for it by reading or writing: then nothing has happened. May block for memory
    /// and for room.
    fn begin(&self, _open: &OpenFile, _transfer: Transfer<'_>) -> Option<Result<()>> {
        None
    }

    /// Shows the device what was begun.
    fn send_begun(&self) {}

    /// Whether the file has positions: `read`, `write` and `lseek` then use them.
    fn is_seekable(&self) -> bool {
        false
    }

    /// Whether `read`, `write` and `lseek` move the position, if it has any; that of a memory
    /// device is always 0.
    fn moves_position(&self) -> bool {
        true
    }

    /// Whether a file without positions takes `lseek` and does nothing, as Linux's
    /// `noop_llseek`; others refuse it.
    fn ignores_seeks(&self) -> bool {
        false
    }

    /// What is ready now.
    fn poll(&self) -> Events {
        Events::READABLE | Events::WRITABLE
    }

    /// What is ready now of what `interest` names, for who asks often; it may say more.
    fn poll_for(&self, _interest: Events) -> Events {
        self.poll()
    }

    /// Who to ask for changes; `None` if the file is always ready (and epoll refuses it).
    fn pollee(&self) -> Option<&Pollee> {
        None
    }

    /// A device's own request; `argument` is a number or a user address.
    fn ioctl(&self, _open: &OpenFile, _request: u32, _argument: u64) -> Result<usize> {
        Err(Error::NotTerminal)
    }

    /// Who gets signals of readiness if nobody was named (`Owner::NOBODY` if none); `None` for
    /// files that send none.
    fn async_owner(&self) -> Option<Owner> {
        self.as_socket().map(|_| Owner::NOBODY)
    }

    /// The last descriptor of `open` was closed (by one of possibly many programs).
    fn close(&self, _open: &OpenFile) {}

    /// The current program gave up one of its descriptors, others may be left.
    fn flush(&self) {}

    /// Brings what was written to the medium, for what keeps data and is no inode: a disk.
    ///
    /// Errors: `Invalid` for what keeps none.
    fn bring_out(&self) -> Result<()> {
        Err(Error::Invalid)
    }

    /// Up to which failed write-back an open file that begins now has heard.
    fn failures_heard(&self) -> u32 {
        0
    }

    /// Whether a write-back has failed since an open file has heard up to `heard`; now it has.
    fn tell_failures(&self, _heard: &mut u32) -> bool {
        false
    }

    /// Its bytes as pages that can be mapped; `None` where it has none.
    fn memory(self: Arc<Self>) -> Option<Arc<dyn MemoryObject>> {
        None
    }

    /// What mmap(2) of the bytes `range` shows.
    ///
    /// Errors: `WrongDevice` where nothing can be mapped.
    fn map(self: Arc<Self>, _range: Range<u64>, _is_shared: bool) -> Result<Arc<dyn MemoryObject>> {
        self.memory().ok_or(Error::WrongDevice)
    }

    /// Whether a message may carry it to another program (SCM_RIGHTS).
    fn may_travel(&self) -> bool {
        true
    }

    /// The file as a socket, if it is one.
    fn as_socket(&self) -> Option<&dyn Socket> {
        None
    }

    /// What stat(2) says of it; for files without a name, little.
    fn metadata(&self) -> Result<Metadata> {
        Ok(Metadata::anonymous(FileType::Anonymous))
    }

    /// For a pipe: its capacity in bytes, after it was set to at least `wanted` of them.
    fn pipe_capacity(&self, _wanted: Option<usize>) -> Option<Result<usize>> {
        None
    }

    /// What /proc/PID/fdinfo shows besides position and flags; whole lines.
    fn describe(&self, _text: &mut Text) {}

    /// What /proc/PID/fd shows where there is no path: `pipe:[5]`, `anon_inode:[eventfd]`.
    fn label(&self) -> String {
        String::from("anon_inode:[file]")
    }

    /// For narrowing to a concrete kind of file (`as_any().downcast_ref::<Socket>()`).
    fn as_any(&self) -> &dyn core::any::Any;
}

/// A file as the table holds it.
pub type FileRef = Arc<dyn File>;
