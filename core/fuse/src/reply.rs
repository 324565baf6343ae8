//! What a server answers.

use fields::Reader;

use crate::attributes::{Attributes, Entry, FileSystemUsage};
use crate::body::Shape;
use crate::{NAME_BYTES_MAX, VERSION};

/// A reply, borrowed from the message that brought it.
#[derive(Clone, Copy, Debug)]
pub enum Reply<'a> {
    /// The request failed with this Linux error number.
    Error(u32),
    /// The server speaks our protocol.
    Init {
        /// Bytes of data that a write may have, at least a page.
        write_bytes_max: u32,
    },
    /// The node that was named or made.
    Entry(Entry),
    /// A node's attributes.
    Attributes(Attributes),
    /// An open node, by this handle.
    Open(u64),
    /// A file that was made, and its handle.
    Created(Entry, u64),
    /// Bytes that were read, a link's text, an attribute's value: fewer than asked for at the end.
    Data(&'a [u8]),
    /// Names in a directory; none at its end.
    Directory(DirList<'a>),
    /// Bytes written.
    Written(u32),
    /// How full the file system is.
    Usage(FileSystemUsage),
    /// Where the next data or hole is.
    Offset(u64),
    /// It is done.
    Done,
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

/// A name in a directory: `struct fuse_dirent`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DirEntry<'a> {
    /// The inode's number.
    pub number: u64,
    /// The cursor after this entry.
    pub next: u64,
    /// `d_type`.
    pub kind: u32,
    /// The name; from the server, so it may be anything of at most [`NAME_BYTES_MAX`] bytes.
    pub name: &'a [u8],
}

/// Iterates over a [`DirList`].
#[derive(Clone, Debug)]
pub struct DirEntries<'a>(Reader<'a>);

impl<'a> Iterator for DirEntries<'a> {
    type Item = DirEntry<'a>;

    fn next(&mut self) -> Option<DirEntry<'a>> {
        let from = &mut self.0;
        let (number, next) = (from.u64()?, from.u64()?);
        let (len, kind) = (from.u32()? as usize, from.u32()?);
        let name = from.bytes(len).filter(|_| len <= NAME_BYTES_MAX)?;
        // The last one of a list may end without its padding.
        let padding = len.next_multiple_of(8) - len;
        let _ = from.bytes(padding.min(from.rest().len()));
        Some(DirEntry {
            number,
            next,
            kind,
            name,
        })
    }
}

impl<'a> Reply<'a> {
    /// Decodes the body of a reply; `limit` is the most that was asked for.
    pub(crate) fn decode(shape: Shape, limit: usize, body: &'a [u8]) -> Option<Self> {
        let from = &mut Reader::new(body);
        Some(match shape {
            Shape::Silence | Shape::Nothing => Self::Done,
            Shape::Init => init(from)?,
            Shape::Entry => Self::Entry(Entry::read(from)?),
            Shape::Attributes => {
                let _valid = from.bytes(16)?;
                Self::Attributes(Attributes::read(from)?)
            }
            Shape::Open => Self::Open(open(from)?),
            Shape::Created => {
                let entry = Entry::read(from)?;
                Self::Created(entry, open(from)?)
            }
            Shape::Data | Shape::Target => Self::Data(within(body, limit)?),
            Shape::Names => Self::Directory(DirList(within(body, limit)?)),
            Shape::Written => {
                let count = from.u32().filter(|&count| count as usize <= limit)?;
                Self::Written(count)
            }
            Shape::Usage => Self::Usage(FileSystemUsage::read(from)?),
            Shape::Offset => Self::Offset(from.u64()?),
        })
    }
}

fn within(body: &[u8], limit: usize) -> Option<&[u8]> {
    Some(body).filter(|body| body.len() <= limit)
}

/// `struct fuse_open_out`: its flags speak of caches that we do not have.
fn open(from: &mut Reader<'_>) -> Option<u64> {
    let handle = from.u64()?;
    let _flags = from.bytes(8)?;
    Some(handle)
}

/// `struct fuse_init_out`. A server with a newer minor version falls back to ours.
fn init<'a>(from: &mut Reader<'_>) -> Option<Reply<'a>> {
    const PAGE_BYTES: u32 = 4096;
    let (major, minor) = (from.u32()?, from.u32()?);
    // Since 7.23 all of it is there.
    let is_ours = major == VERSION.0 && minor >= 23;
    let (_read_ahead, _flags, _background) = (from.u32()?, from.u32()?, from.u32()?);
    let write_bytes_max = from.u32()?;
    let is_ours = is_ours && write_bytes_max >= PAGE_BYTES;
    is_ours.then_some(Reply::Init { write_bytes_max })
}
