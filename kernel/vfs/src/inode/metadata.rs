//! What stat(2) tells, and what chmod(2) and its kin change.

use core::sync::atomic::{AtomicU32, Ordering};

use base::PAGE_BYTES;
use sync::{Error, Result};

/// The kinds of file; the values are Linux's `S_IFMT` bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum FileType {
    /// A named pipe.
    Fifo = 0o010000,
    /// A character device's node.
    CharDevice = 0o020000,
    /// A directory.
    Directory = 0o040000,
    /// A block device's node.
    BlockDevice = 0o060000,
    /// A regular file.
    Regular = 0o100000,
    /// A symbolic link.
    Symlink = 0o120000,
    /// A socket.
    Socket = 0o140000,
    /// Something without a name (eventfd, epoll ...).
    Anonymous = 0,
}

impl FileType {
    /// The kind that a mode's `S_IFMT` bits say; without any, a regular file.
    pub const fn from_mode(mode: u32) -> Option<Self> {
        Some(match mode & 0o170000 {
            0o010000 => Self::Fifo,
            0o020000 => Self::CharDevice,
            0o040000 => Self::Directory,
            0o060000 => Self::BlockDevice,
            0o100000 | 0 => Self::Regular,
            0o120000 => Self::Symlink,
            0o140000 => Self::Socket,
            _ => return None,
        })
    }

    /// `d_type` of getdents64: the `S_IFMT` bits shifted down.
    pub const fn dirent(self) -> u8 {
        (self as u32 >> 12) as u8
    }
}

/// A point in time by the calendar: since 1970-01-01, UTC.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Timestamp {
    /// Whole seconds; negative before 1970.
    pub seconds: i64,
    /// The rest, below 10^9.
    pub nanos: u32,
}

impl Timestamp {
    /// Now.
    pub fn now() -> Self {
        let wall = mach::time::wall_now();
        Self {
            seconds: wall.as_secs() as i64,
            nanos: wall.subsec_nanos(),
        }
    }
}

/// Everything stat(2) and statx(2) report.
#[derive(Clone, Copy, Debug)]
pub struct Metadata {
    /// The file system's number (makedev encoding).
    pub device: u64,
    /// The inode's number, unique on its device.
    pub number: u64,
    /// What it is.
    pub kind: FileType,
    /// Permission bits with set-id and sticky.
    pub mode: u32,
    /// Names it has.
    pub links: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// For a device's node: which device.
    pub node: u64,
    /// Bytes.
    pub size: u64,
    /// Units of 512 bytes that it occupies.
    pub blocks: u64,
    /// Last read.
    pub accessed: Timestamp,
    /// Last write.
    pub modified: Timestamp,
    /// Last change of anything.
    pub changed: Timestamp,
    /// Creation.
    pub created: Timestamp,
}

/// The device number of things without a file system.
const ANONYMOUS_DEVICE: u64 = 0x0f;

impl Metadata {
    /// Of a fresh inode with these properties; times are zero.
    pub fn new(device: u64, number: u64, kind: FileType, mode: u32) -> Self {
        let never = Timestamp::default();
        Self {
            device,
            number,
            kind,
            mode,
            links: 1,
            uid: 0,
            gid: 0,
            node: 0,
            size: 0,
            blocks: 0,
            accessed: never,
            modified: never,
            changed: never,
            created: never,
        }
    }

    /// Of something that has no name: a pipe, a socket, an eventfd.
    pub fn anonymous(kind: FileType) -> Self {
        Self::new(ANONYMOUS_DEVICE, 1, kind, 0o600)
    }

    /// `st_mode`: kind and permission bits.
    pub fn full_mode(&self) -> u32 {
        self.kind as u32 | self.mode
    }

    /// The next data (or hole) at or after `offset` where all of the file is data; `NoSuchDevice` beyond the end.
    pub fn seek(&self, offset: u64, hole: bool) -> Result<u64> {
        match offset < self.size {
            true => Ok(if hole { self.size } else { offset }),
            false => Err(Error::NoSuchDevice),
        }
    }

    /// The size of I/O that suits the file.
    pub fn block_bytes(&self) -> u32 {
        PAGE_BYTES as u32
    }
}

/// What to change; `None` leaves a field as it is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Change {
    /// Permission bits.
    pub mode: Option<u32>,
    /// Owner.
    pub uid: Option<u32>,
    /// Group.
    pub gid: Option<u32>,
    /// Time of the last read.
    pub accessed: Option<Timestamp>,
    /// Time of the last write.
    pub modified: Option<Timestamp>,
}

/// Linux's encoding of a device number (`makedev`).
pub const fn device_number(major: u32, minor: u32) -> u64 {
    let (major, minor) = (major as u64, minor as u64);
    (major & 0xfff) << 8 | (major & !0xfff) << 32 | minor & 0xff | (minor & !0xff) << 12
}

/// (major, minor) of a device number.
pub const fn device_parts(device: u64) -> (u32, u32) {
    let major = device >> 8 & 0xfff | device >> 32 & 0xffff_f000;
    let minor = device & 0xff | device >> 12 & 0xffff_ff00;
    (major as u32, minor as u32)
}

/// A number for a new file system without a device of its own.
pub fn next_device() -> u64 {
    /// Numbers of file systems are the machine's: programs tell files apart by them.
    static NEXT: AtomicU32 = AtomicU32::new(20);
    device_number(0, NEXT.fetch_add(1, Ordering::Relaxed))
}
