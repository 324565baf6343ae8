//! Replies as they are handed to the thread that waits: owned, errors in our words.

use alloc::vec::Vec;

use fs_host::{Name, error_of};
use ninep::{Attributes, FileSystemUsage, Qid, Reply, ReplyError, VERSION};
use sync::{Error, Result};

/// What a server answered.
pub(super) enum Answer {
    /// It is done; what else the reply says is of no use.
    Done,
    Version {
        is_ours: bool,
        msize: usize,
    },
    Walked(Vec<Qid>),
    /// A file is open.
    Opened(Qid),
    Data(Vec<u8>),
    Written(usize),
    Names(Vec<Name>),
    Attributes(Attributes),
    Usage(FileSystemUsage),
}

impl Answer {
    pub(super) fn of(reply: core::result::Result<Reply<'_>, ReplyError>) -> Result<Self> {
        Ok(match reply.map_err(|_| Error::Io)? {
            Reply::Error(number) => return Err(error_of(number)),
            Reply::Version { msize, version } => Self::Version {
                is_ours: version == VERSION,
                msize: msize as usize,
            },
            Reply::Walk(qids) => Self::Walked(qids.iter().collect()),
            Reply::Data(data) | Reply::Target(data) => Self::Data(data.to_vec()),
            Reply::Written(count) => Self::Written(count as usize),
            Reply::Directory(list) => Self::Names(list.iter().map(name_of).collect()),
            Reply::Attributes(attributes) => Self::Attributes(attributes),
            Reply::Usage(usage) => Self::Usage(usage),
            Reply::Open { qid, .. } => Self::Opened(qid),
            Reply::Qid(_) | Reply::Lock(_) | Reply::Done => Self::Done,
        })
    }
}

fn name_of(entry: ninep::DirEntry<'_>) -> Name {
    let kind = u32::from(entry.kind);
    Name::new(entry.name, entry.qid.path, kind, entry.next)
}
