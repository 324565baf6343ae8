//! What a server answers.

use crate::attributes::{Attributes, FileSystemUsage, Qid};
use crate::request::Kind;
use fields::Reader;

/// How a record lock went.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lock {
    /// Done.
    Granted,
    /// Somebody else has it.
    Blocked,
    /// The server could not.
    Failed,
    /// The server is starting; again later.
    Grace,
}

/// A reply, borrowed from the message that brought it.
#[derive(Clone, Copy, Debug)]
pub enum Reply<'a> {
    /// The request failed with this Linux error number.
    Error(u32),
    /// The largest message from now on, and the protocol that the server chose.
    Version {
        /// Bytes, header included.
        msize: u32,
        /// [`crate::VERSION`] if all is well.
        version: &'a [u8],
    },
    /// The file that a request made or named.
    Qid(Qid),
    /// What was passed on the way; all went well only if there is one for each name.
    Walk(WalkQids<'a>),
    /// An open file, and the most bytes that one read or write moves (0: as msize says).
    Open {
        /// The file.
        qid: Qid,
        /// Bytes.
        iounit: u32,
    },
    /// Bytes read; fewer than asked for at the end.
    Data(&'a [u8]),
    /// Bytes written.
    Written(u32),
    /// Names in a directory; none at its end.
    Directory(DirList<'a>),
    /// A file's attributes.
    Attributes(Attributes),
    /// A symbolic link's text.
    Target(&'a [u8]),
    /// How full the file system is.
    Usage(FileSystemUsage),
    /// How a lock went.
    Lock(Lock),
    /// It is done.
    Done,
}

/// The identities along a walk.
#[derive(Clone, Copy, Debug)]
pub struct WalkQids<'a>(&'a [u8]);

impl<'a> WalkQids<'a> {
    /// How many names were walked.
    pub fn count(&self) -> usize {
        self.0.len() / Qid::BYTES
    }

    /// The identities in order.
    pub fn iter(&self) -> impl Iterator<Item = Qid> + 'a {
        self.0
            .chunks_exact(Qid::BYTES)
            .filter_map(|bytes| Qid::read(&mut Reader::new(bytes)))
    }
}

/// A stretch of a directory's names.
#[derive(Clone, Copy, Debug)]
pub struct DirList<'a>(&'a [u8]);

impl<'a> DirList<'a> {
    /// The names in order. A malformed one ends the list.
    pub fn iter(&self) -> DirEntries<'a> {
        DirEntries(Reader::new(self.0))
    }
}

/// A name in a directory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DirEntry<'a> {
    /// The file.
    pub qid: Qid,
    /// The cursor after this entry.
    pub next: u64,
    /// `d_type`.
    pub kind: u8,
    /// The name; from the server, so it may be anything.
    pub name: &'a [u8],
}

/// Iterates over a [`DirList`].
#[derive(Clone, Debug)]
pub struct DirEntries<'a>(Reader<'a>);

impl<'a> Iterator for DirEntries<'a> {
    type Item = DirEntry<'a>;

    fn next(&mut self) -> Option<DirEntry<'a>> {
        let from = &mut self.0;
        Some(DirEntry {
            qid: Qid::read(from)?,
            next: from.u64()?,
            kind: from.u8()?,
            name: from.string()?,
        })
    }
}

/// The type of a reply that says "error", to whatever request.
pub(crate) const ERROR: u8 = 7;

impl<'a> Reply<'a> {
    /// Decodes an error's body.
    pub(crate) fn decode_error(body: &'a [u8]) -> Option<Self> {
        Reader::new(body).u32().map(Self::Error)
    }

    /// Decodes the body of the reply to a request of this kind; `limit` is the most that
    /// was asked for.
    pub(crate) fn decode(kind: Kind, limit: u32, body: &'a [u8]) -> Option<Self> {
        let from = &mut Reader::new(body);
        Some(match kind {
            Kind::Version => {
                let msize = from.u32().filter(|&msize| msize <= limit)?;
                Self::Version {
                    msize,
                    version: from.string()?,
                }
            }
            Kind::Attach | Kind::Symlink | Kind::Mknod | Kind::Mkdir => Self::Qid(Qid::read(from)?),
            Kind::Walk => {
                let count = from.u16().filter(|&count| u32::from(count) <= limit)?;
                Self::Walk(WalkQids(from.bytes(usize::from(count) * Qid::BYTES)?))
            }
            Kind::Lopen | Kind::Lcreate => Self::Open {
                qid: Qid::read(from)?,
                iounit: from.u32()?,
            },
            Kind::Read => Self::Data(counted(from, limit)?),
            Kind::Readdir => Self::Directory(DirList(counted(from, limit)?)),
            Kind::Write => Self::Written(from.u32().filter(|&count| count <= limit)?),
            Kind::Getattr => Self::Attributes(Attributes::read(from)?),
            Kind::Readlink => Self::Target(from.string()?),
            Kind::Statfs => Self::Usage(FileSystemUsage::read(from)?),
            Kind::Lock => Self::Lock(lock(from.u8()?)?),
            Kind::Setattr
            | Kind::Fsync
            | Kind::Link
            | Kind::Renameat
            | Kind::Unlinkat
            | Kind::Flush
            | Kind::Clunk => Self::Done,
        })
    }
}

/// `count[4] data[count]`.
fn counted<'a>(from: &mut Reader<'a>, limit: u32) -> Option<&'a [u8]> {
    let count = from.u32().filter(|&count| count <= limit)?;
    from.bytes(count as usize)
}

fn lock(status: u8) -> Option<Lock> {
    [Lock::Granted, Lock::Blocked, Lock::Failed, Lock::Grace]
        .get(usize::from(status))
        .copied()
}
