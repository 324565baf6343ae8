//! Inodes: 128 bytes that ext2 had, and what later versions put behind them.

use crate::bytes::{joined32, le16, le32, put, put_le16, put_le32, span, zero};
use checksum::Crc32c;

/// Bytes of the block map, where the root of the extent tree or a short link's text is.
pub(crate) const MAP_BYTES: usize = 60;
/// Where inodes of ext2 end.
pub(crate) const GOOD_OLD_BYTES: usize = 128;

/// `i_flags`: nothing may change.
pub const FLAG_IMMUTABLE: u32 = 0x10;
/// `i_flags`: it can only become longer.
pub const FLAG_APPEND: u32 = 0x20;
/// `i_flags`: the directory is indexed.
pub(crate) const FLAG_INDEX: u32 = 0x1000;
/// `i_flags`: `i_blocks` counts blocks, not sectors.
pub(crate) const FLAG_HUGE_FILE: u32 = 0x4_0000;
/// `i_flags`: the map is an extent tree.
pub(crate) const FLAG_EXTENTS: u32 = 0x8_0000;
/// `i_flags` that are passed on to files made in a directory.
pub(crate) const FLAGS_INHERITED: u32 = 0xc8;

const CHECKSUM_LOW_AT: usize = 0x7c;
const CHECKSUM_HIGH_AT: usize = 0x82;

/// A point in time: seconds since 1970, and nanoseconds below 10^9.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Time {
    /// Whole seconds.
    pub seconds: i64,
    /// The rest.
    pub nanos: u32,
}

/// What a file is; the values are the `S_IFMT` bits of its mode.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u16)]
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
}

impl FileType {
    /// Of a mode's bits.
    pub fn from_mode(mode: u16) -> Option<Self> {
        Some(match mode & 0o170000 {
            0o010000 => Self::Fifo,
            0o020000 => Self::CharDevice,
            0o040000 => Self::Directory,
            0o060000 => Self::BlockDevice,
            0o100000 => Self::Regular,
            0o120000 => Self::Symlink,
            0o140000 => Self::Socket,
            _ => return None,
        })
    }
}

/// An inode's fields, without what lies behind them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Inode {
    /// Its number.
    pub number: u32,
    /// Kind and permissions.
    pub mode: u16,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Bytes.
    pub size: u64,
    /// Names.
    pub links: u16,
    /// Units of 512 bytes that it occupies.
    pub sectors: u64,
    /// `i_flags`.
    pub flags: u32,
    /// Last read.
    pub accessed: Time,
    /// Last change of anything.
    pub changed: Time,
    /// Last write.
    pub modified: Time,
    /// Creation, where there is room for it.
    pub created: Time,
    /// Deletion; while the inode is an orphan, the next one.
    pub(crate) deleted: u32,
    /// Tells inodes of the same number apart.
    pub generation: u32,
    pub(crate) attribute_block: u64,
    pub(crate) extra_isize: u16,
    pub(crate) map: [u8; MAP_BYTES],
}

impl Inode {
    pub(crate) fn parse(number: u32, raw: &[u8], block_bytes: usize) -> Self {
        let is_large = raw.len() > GOOD_OLD_BYTES;
        let extra_isize = if is_large { le16(raw, 0x80) } else { 0 };
        let flags = le32(raw, 0x20);
        let blocks = u64::from(le32(raw, 0x1c)) | u64::from(le16(raw, 0x74)) << 32;
        let unit = if flags & FLAG_HUGE_FILE != 0 {
            block_bytes as u64 / 512
        } else {
            1
        };
        let time = |at: usize, extra_at: usize| Time::parse(raw, at, extra_at, extra_isize);
        let mut map = [0; MAP_BYTES];
        put(&mut map, 0, span(raw, 0x28, MAP_BYTES));
        Self {
            number,
            mode: le16(raw, 0),
            uid: joined32(raw, 2, 0x78),
            gid: joined32(raw, 0x18, 0x7a),
            size: u64::from(le32(raw, 4)) | u64::from(le32(raw, 0x6c)) << 32,
            links: le16(raw, 0x1a),
            sectors: blocks.saturating_mul(unit),
            flags,
            accessed: time(8, 0x8c),
            changed: time(0xc, 0x84),
            modified: time(0x10, 0x88),
            created: if extra_isize >= 0x14 {
                time(0x90, 0x94)
            } else {
                Time::default()
            },
            deleted: le32(raw, 0x14),
            generation: le32(raw, 0x64),
            attribute_block: u64::from(le32(raw, 0x68)) | u64::from(le16(raw, 0x76)) << 32,
            extra_isize,
            map,
        }
    }

    pub(crate) fn store(&self, raw: &mut [u8], block_bytes: usize) {
        put_le16(raw, 0, self.mode);
        put_le16(raw, 2, self.uid as u16);
        put_le16(raw, 0x78, (self.uid >> 16) as u16);
        put_le16(raw, 0x18, self.gid as u16);
        put_le16(raw, 0x7a, (self.gid >> 16) as u16);
        put_le32(raw, 4, self.size as u32);
        put_le32(raw, 0x6c, (self.size >> 32) as u32);
        put_le32(raw, 0x14, self.deleted);
        put_le16(raw, 0x1a, self.links);
        let unit = if self.flags & FLAG_HUGE_FILE != 0 {
            block_bytes as u64 / 512
        } else {
            1
        };
        let blocks = self.sectors / unit.max(1);
        put_le32(raw, 0x1c, blocks as u32);
        put_le16(raw, 0x74, (blocks >> 32) as u16);
        put_le32(raw, 0x20, self.flags);
        put(raw, 0x28, &self.map);
        put_le32(raw, 0x64, self.generation);
        put_le32(raw, 0x68, self.attribute_block as u32);
        put_le16(raw, 0x76, (self.attribute_block >> 32) as u16);
        if raw.len() > GOOD_OLD_BYTES {
            put_le16(raw, 0x80, self.extra_isize);
        }
        self.accessed.store(raw, 8, 0x8c, self.extra_isize);
        self.changed.store(raw, 0xc, 0x84, self.extra_isize);
        self.modified.store(raw, 0x10, 0x88, self.extra_isize);
        if self.extra_isize >= 0x14 {
            self.created.store(raw, 0x90, 0x94, self.extra_isize);
        }
    }

    /// What it is.
    pub fn kind(&self) -> Option<FileType> {
        FileType::from_mode(self.mode)
    }

    /// Whether it is a directory.
    pub fn is_directory(&self) -> bool {
        self.kind() == Some(FileType::Directory)
    }

    pub(crate) fn has(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }

    /// With what checksums of blocks of this inode start.
    pub(crate) fn seed(&self, file_system_seed: Crc32c) -> Crc32c {
        seed(file_system_seed, self.number, self.generation)
    }

    /// The device's number (major, minor) of a node.
    pub fn device(&self) -> (u32, u32) {
        let (old, new) = (le32(&self.map, 0), le32(&self.map, 4));
        match old {
            0 => (new >> 8 & 0xfff, new & 0xff | new >> 12 & 0xf_ff00),
            _ => (old >> 8 & 0xff, old & 0xff),
        }
    }

    pub(crate) fn set_device(&mut self, major: u32, minor: u32) {
        self.map = [0; MAP_BYTES];
        if major < 256 && minor < 256 {
            put_le32(&mut self.map, 0, major << 8 | minor);
        } else {
            put_le32(
                &mut self.map,
                4,
                minor & 0xff | major << 8 | (minor & !0xff) << 12,
            );
        }
    }
}

fn seed(file_system_seed: Crc32c, number: u32, generation: u32) -> Crc32c {
    let seed = file_system_seed.with(&number.to_le_bytes());
    seed.with(&generation.to_le_bytes())
}

impl Time {
    fn parse(raw: &[u8], at: usize, extra_at: usize, extra_isize: u16) -> Self {
        let seconds = i64::from(le32(raw, at) as i32);
        if extra_at + 4 > GOOD_OLD_BYTES + usize::from(extra_isize) {
            return Self { seconds, nanos: 0 };
        }
        let extra = le32(raw, extra_at);
        Self {
            seconds: seconds + (i64::from(extra & 3) << 32),
            nanos: (extra >> 2).min(999_999_999),
        }
    }

    fn store(self, raw: &mut [u8], at: usize, extra_at: usize, extra_isize: u16) {
        put_le32(raw, at, self.seconds as u32);
        if extra_at + 4 <= GOOD_OLD_BYTES + usize::from(extra_isize) {
            let epoch = ((self.seconds - i64::from(self.seconds as i32)) >> 32) as u32 & 3;
            put_le32(raw, extra_at, self.nanos << 2 | epoch);
        }
    }
}

fn checksum(number: u32, raw: &[u8], file_system_seed: Crc32c) -> u32 {
    let seed = seed(file_system_seed, number, le32(raw, 0x64));
    let sum = seed.with(span(raw, 0, CHECKSUM_LOW_AT)).with(&[0; 2]);
    if !has_high_checksum(raw) {
        let rest = raw.get(CHECKSUM_LOW_AT + 2..).unwrap_or(&[]);
        return sum.with(rest).register() & 0xffff;
    }
    let sum = sum.with(span(raw, 0x7e, CHECKSUM_HIGH_AT - 0x7e));
    let rest = raw.get(CHECKSUM_HIGH_AT + 2..).unwrap_or(&[]);
    sum.with(&[0; 2]).with(rest).register()
}

fn has_high_checksum(raw: &[u8]) -> bool {
    raw.len() > GOOD_OLD_BYTES && le16(raw, 0x80) >= 4
}

/// Whether the inode's checksum is right; one that is all zeroes was never written.
pub(crate) fn is_sealed(number: u32, raw: &[u8], file_system_seed: Crc32c) -> bool {
    let high = if has_high_checksum(raw) {
        le16(raw, CHECKSUM_HIGH_AT)
    } else {
        0
    };
    let stored = u32::from(le16(raw, CHECKSUM_LOW_AT)) | u32::from(high) << 16;
    stored == checksum(number, raw, file_system_seed) || raw.iter().all(|byte| *byte == 0)
}

/// Stores the inode's checksum.
pub(crate) fn seal(number: u32, raw: &mut [u8], file_system_seed: Crc32c) {
    let sum = checksum(number, raw, file_system_seed);
    put_le16(raw, CHECKSUM_LOW_AT, sum as u16);
    if has_high_checksum(raw) {
        put_le16(raw, CHECKSUM_HIGH_AT, (sum >> 16) as u16);
    }
}

/// Whether the fields of an inode that is in use can be.
pub(crate) fn is_plausible(inode: &Inode, raw: &[u8]) -> bool {
    let extra = usize::from(inode.extra_isize);
    extra.is_multiple_of(4)
        && GOOD_OLD_BYTES + extra <= raw.len().max(GOOD_OLD_BYTES)
        && inode.kind().is_some()
}

/// A new inode's bytes.
pub(crate) fn clear(raw: &mut [u8]) {
    let len = raw.len();
    zero(raw, 0, len);
}

/// `file_type` of a directory's entry.
pub(crate) fn entry_type(mode: u16) -> u8 {
    match FileType::from_mode(mode) {
        Some(FileType::Regular) => 1,
        Some(FileType::Directory) => 2,
        Some(FileType::CharDevice) => 3,
        Some(FileType::BlockDevice) => 4,
        Some(FileType::Fifo) => 5,
        Some(FileType::Socket) => 6,
        Some(FileType::Symlink) => 7,
        None => 0,
    }
}
