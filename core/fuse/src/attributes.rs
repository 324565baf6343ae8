//! What messages say about nodes.

use fields::{Reader, Writer};

use crate::NodeId;

/// A point in time, as Linux counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Time {
    /// Seconds since 1970; two's complement before.
    pub seconds: u64,
    /// Nanoseconds of the second; from the server, so not necessarily below a billion.
    pub nanos: u32,
}

/// `struct fuse_attr`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Attributes {
    /// The inode's number.
    pub number: u64,
    /// Bytes.
    pub size: u64,
    /// Blocks of 512 bytes in use.
    pub blocks: u64,
    /// Last access.
    pub accessed: Time,
    /// Last change of the contents.
    pub modified: Time,
    /// Last change of these attributes.
    pub changed: Time,
    /// `st_mode`.
    pub mode: u32,
    /// Names.
    pub links: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Device number of a device's node, as Linux encodes 32 bits.
    pub device: u32,
}

impl Attributes {
    pub(crate) const BYTES: usize = 88;

    pub(crate) fn read(from: &mut Reader<'_>) -> Option<Self> {
        let (number, size, blocks) = (from.u64()?, from.u64()?, from.u64()?);
        let seconds = [from.u64()?, from.u64()?, from.u64()?];
        let mut time = |seconds| {
            let nanos = from.u32()?;
            Some(Time { seconds, nanos })
        };
        let [accessed, modified, changed] = seconds;
        let (accessed, modified, changed) = (time(accessed)?, time(modified)?, time(changed)?);
        let attributes = Self {
            number,
            size,
            blocks,
            accessed,
            modified,
            changed,
            mode: from.u32()?,
            links: from.u32()?,
            uid: from.u32()?,
            gid: from.u32()?,
            device: from.u32()?,
        };
        let (_block_bytes, _flags) = (from.u32()?, from.u32()?);
        Some(attributes)
    }
}

/// A node under a name: `struct fuse_entry_out`. The server has counted it once more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry {
    /// The server's number of it; zero says that the name is free.
    pub node: NodeId,
    /// Tells apart two nodes that had the number one after the other.
    pub generation: u64,
    /// What it is.
    pub attributes: Attributes,
}

impl Entry {
    pub(crate) const BYTES: usize = 40 + Attributes::BYTES;

    pub(crate) fn read(from: &mut Reader<'_>) -> Option<Self> {
        let (node, generation) = (from.u64()?, from.u64()?);
        // For how long name and attributes are valid: nothing is remembered.
        let _valid = from.bytes(24)?;
        Some(Self {
            node,
            generation,
            attributes: Attributes::read(from)?,
        })
    }
}

/// A time to set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SetTime {
    /// The server's present.
    Now,
    /// This time.
    To(Time),
}

/// What `Setattr` changes; `None` stays.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SetAttributes {
    /// `st_mode`.
    pub mode: Option<u32>,
    /// Owner.
    pub uid: Option<u32>,
    /// Group.
    pub gid: Option<u32>,
    /// Bytes.
    pub size: Option<u64>,
    /// Last access.
    pub accessed: Option<SetTime>,
    /// Last change of the contents.
    pub modified: Option<SetTime>,
    /// An open file of the node, by which the size is set.
    pub handle: Option<u64>,
}

impl SetAttributes {
    const MODE: u32 = 1 << 0;
    const UID: u32 = 1 << 1;
    const GID: u32 = 1 << 2;
    const SIZE: u32 = 1 << 3;
    const ATIME: u32 = 1 << 4;
    const MTIME: u32 = 1 << 5;
    const HANDLE: u32 = 1 << 6;
    const ATIME_NOW: u32 = 1 << 7;
    const MTIME_NOW: u32 = 1 << 8;

    fn valid(&self) -> u32 {
        let time = |time: Option<SetTime>, change: u32, now: u32| match time {
            None => 0,
            Some(SetTime::Now) => change | now,
            Some(SetTime::To(_)) => change,
        };
        let flag = |is_some: bool, flag: u32| if is_some { flag } else { 0 };
        flag(self.mode.is_some(), Self::MODE)
            | flag(self.uid.is_some(), Self::UID)
            | flag(self.gid.is_some(), Self::GID)
            | flag(self.size.is_some(), Self::SIZE)
            | flag(self.handle.is_some(), Self::HANDLE)
            | time(self.accessed, Self::ATIME, Self::ATIME_NOW)
            | time(self.modified, Self::MTIME, Self::MTIME_NOW)
    }

    /// `struct fuse_setattr_in`.
    pub(crate) fn write(&self, to: &mut Writer<'_>) {
        let time = |time: Option<SetTime>| match time {
            Some(SetTime::To(time)) => time,
            _ => Time::default(),
        };
        let (accessed, modified) = (time(self.accessed), time(self.modified));
        to.u32(self.valid()).u32(0);
        to.u64(self.handle.unwrap_or(0)).u64(self.size.unwrap_or(0));
        // No owner of locks.
        to.u64(0).u64(accessed.seconds).u64(modified.seconds).u64(0);
        to.u32(accessed.nanos).u32(modified.nanos).u32(0);
        to.u32(self.mode.unwrap_or(0)).u32(0);
        to.u32(self.uid.unwrap_or(0)).u32(self.gid.unwrap_or(0));
        to.u32(0);
    }
}

/// What `Statfs` says of a file system; sizes in blocks: `struct fuse_kstatfs`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FileSystemUsage {
    /// All blocks.
    pub blocks: u64,
    /// Free blocks.
    pub free_blocks: u64,
    /// Free blocks for everybody.
    pub available_blocks: u64,
    /// All inodes.
    pub inodes: u64,
    /// Free inodes.
    pub free_inodes: u64,
    /// Bytes in a block.
    pub block_bytes: u32,
}

impl FileSystemUsage {
    pub(crate) const BYTES: usize = 80;

    pub(crate) fn read(from: &mut Reader<'_>) -> Option<Self> {
        let (blocks, free_blocks, available_blocks) = (from.u64()?, from.u64()?, from.u64()?);
        let (inodes, free_inodes) = (from.u64()?, from.u64()?);
        let (best_bytes, _name_bytes_max, block_bytes) = (from.u32()?, from.u32()?, from.u32()?);
        Some(Self {
            blocks,
            free_blocks,
            available_blocks,
            inodes,
            free_inodes,
            // Sizes are in fragments; a server that says none means blocks.
            block_bytes: if block_bytes == 0 {
                best_bytes
            } else {
                block_bytes
            },
        })
    }
}
