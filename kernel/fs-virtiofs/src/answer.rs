//! Replies as they are handed to the thread that waits: owned, errors in our words.

use alloc::vec::Vec;

use fs_host::{Name, error_of};
use fuse::{Attributes, Entry, FileSystemUsage, Reply, ReplyError};
use sync::{Error, Result};

/// What the daemon answered.
pub(crate) enum Answer {
    Done,
    /// The most bytes of a write.
    Ready(usize),
    Entry(Entry),
    Attributes(Attributes),
    Open(u64),
    Created(Entry, u64),
    Data(Vec<u8>),
    Names(Vec<Name>),
    Written(usize),
    Usage(FileSystemUsage),
    Offset(u64),
}

impl Answer {
    pub(crate) fn of(reply: core::result::Result<Reply<'_>, ReplyError>) -> Result<Self> {
        Ok(match reply.map_err(|_| Error::Io)? {
            Reply::Error(number) => return Err(error_of(number)),
            Reply::Init { write_bytes_max } => Self::Ready(write_bytes_max as usize),
            Reply::Entry(entry) => Self::Entry(entry),
            Reply::Attributes(attributes) => Self::Attributes(attributes),
            Reply::Open(handle) => Self::Open(handle),
            Reply::Created(entry, handle) => Self::Created(entry, handle),
            Reply::Data(data) => Self::Data(data.to_vec()),
            Reply::Directory(list) => Self::Names(list.iter().map(name_of).collect()),
            Reply::Written(count) => Self::Written(count as usize),
            Reply::Usage(usage) => Self::Usage(usage),
            Reply::Offset(offset) => Self::Offset(offset),
            Reply::Done => Self::Done,
        })
    }
}

fn name_of(entry: fuse::DirEntry<'_>) -> Name {
    Name::new(entry.name, entry.number, entry.kind, entry.next)
}
