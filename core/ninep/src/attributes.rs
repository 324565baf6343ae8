//! What messages say about files.

use fields::{Reader, Writer};

/// The server's identity of a file: equal paths are the same file.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Qid {
    /// Kind: bit 7 a directory, bit 1 a symbolic link, zero a file.
    pub kind: u8,
    /// Changes when the file does, if the server keeps count.
    pub version: u32,
    /// Unique on the server while the file exists.
    pub path: u64,
}

impl Qid {
    /// Bytes on the wire.
    pub(crate) const BYTES: usize = 13;

    pub(crate) fn read(from: &mut Reader<'_>) -> Option<Self> {
        Some(Self {
            kind: from.u8()?,
            version: from.u32()?,
            path: from.u64()?,
        })
    }

    /// Whether it is a directory.
    pub fn is_directory(&self) -> bool {
        self.kind & 0x80 != 0
    }

    /// Whether it is a symbolic link.
    pub fn is_symlink(&self) -> bool {
        self.kind & 0x02 != 0
    }
}

/// A point in time, as Linux counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Time {
    /// Seconds since 1970.
    pub seconds: u64,
    /// Nanoseconds of the second; from the server, so not necessarily below a billion.
    pub nanos: u64,
}

impl Time {
    fn read(from: &mut Reader<'_>) -> Option<Self> {
        Some(Self {
            seconds: from.u64()?,
            nanos: from.u64()?,
        })
    }
}

/// What `Getattr` says of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Attributes {
    /// Which fields the server filled in.
    pub valid: u64,
    /// The file's identity.
    pub qid: Qid,
    /// `st_mode`.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Names.
    pub links: u64,
    /// Device number of a device's node.
    pub device: u64,
    /// Bytes.
    pub size: u64,
    /// Bytes that the server likes to read at once.
    pub block_bytes: u64,
    /// Blocks of 512 bytes in use.
    pub blocks: u64,
    /// Last access.
    pub accessed: Time,
    /// Last change of the contents.
    pub modified: Time,
    /// Last change of these attributes.
    pub changed: Time,
}

impl Attributes {
    /// `P9_GETATTR_BASIC`: all fields above.
    pub(crate) const BASIC: u64 = 0x7ff;

    pub(crate) fn read(from: &mut Reader<'_>) -> Option<Self> {
        Some(Self {
            valid: from.u64()?,
            qid: Qid::read(from)?,
            mode: from.u32()?,
            uid: from.u32()?,
            gid: from.u32()?,
            links: from.u64()?,
            device: from.u64()?,
            size: from.u64()?,
            block_bytes: from.u64()?,
            blocks: from.u64()?,
            accessed: Time::read(from)?,
            modified: Time::read(from)?,
            changed: Time::read(from)?,
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
    /// Permission bits.
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
}

impl SetAttributes {
    const MODE: u32 = 1 << 0;
    const UID: u32 = 1 << 1;
    const GID: u32 = 1 << 2;
    const SIZE: u32 = 1 << 3;
    const ATIME: u32 = 1 << 4;
    const MTIME: u32 = 1 << 5;
    const ATIME_SET: u32 = 1 << 7;
    const MTIME_SET: u32 = 1 << 8;

    fn valid(&self) -> u32 {
        let time = |time: Option<SetTime>, change: u32, set: u32| match time {
            None => 0,
            Some(SetTime::Now) => change,
            Some(SetTime::To(_)) => change | set,
        };
        let flag = |is_some: bool, flag: u32| if is_some { flag } else { 0 };
        flag(self.mode.is_some(), Self::MODE)
            | flag(self.uid.is_some(), Self::UID)
            | flag(self.gid.is_some(), Self::GID)
            | flag(self.size.is_some(), Self::SIZE)
            | time(self.accessed, Self::ATIME, Self::ATIME_SET)
            | time(self.modified, Self::MTIME, Self::MTIME_SET)
    }

    pub(crate) fn write(&self, to: &mut Writer<'_>) {
        let time = |time: Option<SetTime>| match time {
            Some(SetTime::To(time)) => time,
            _ => Time::default(),
        };
        to.u32(self.valid()).u32(self.mode.unwrap_or(0));
        to.u32(self.uid.unwrap_or(0)).u32(self.gid.unwrap_or(0));
        to.u64(self.size.unwrap_or(0));
        for Time { seconds, nanos } in [time(self.accessed), time(self.modified)] {
            to.u64(seconds).u64(nanos);
        }
    }
}

/// What `Statfs` says of a file system; sizes in blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FileSystemUsage {
    /// The kind of file system below, as Linux numbers it.
    pub magic: u32,
    /// Bytes in a block.
    pub block_bytes: u32,
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
    /// The file system's identity.
    pub id: u64,
    /// Bytes in a name at most.
    pub name_bytes_max: u32,
}

impl FileSystemUsage {
    pub(crate) fn read(from: &mut Reader<'_>) -> Option<Self> {
        Some(Self {
            magic: from.u32()?,
            block_bytes: from.u32()?,
            blocks: from.u64()?,
            free_blocks: from.u64()?,
            available_blocks: from.u64()?,
            inodes: from.u64()?,
            free_inodes: from.u64()?,
            id: from.u64()?,
            name_bytes_max: from.u32()?,
        })
    }
}
