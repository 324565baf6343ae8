//! A submission queue entry: its fields, as they lie in memory.

use bitflags::bitflags;

use crate::geometry::SQE_BYTES;

bitflags! {
    /// What holds of any operation (IOSQE_*).
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
    pub struct SqeFlags: u8 {
        /// The descriptor is an index into the ring's own files.
        const FIXED_FILE = 1;
        /// Starts when all before it are done.
        const IO_DRAIN = 2;
        /// The next one starts when this one has succeeded.
        const IO_LINK = 4;
        /// The next one starts when this one is done.
        const IO_HARDLINK = 8;
        /// Shall not be tried at once.
        const ASYNC = 16;
        /// The kernel takes a buffer that the program lent.
        const BUFFER_SELECT = 32;
        /// Nothing is posted if it succeeds.
        const CQE_SKIP_SUCCESS = 64;
    }
}

/// How an entry ties the next one to itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Link {
    /// Not at all.
    None,
    /// The next one starts only if this one succeeds.
    Success,
    /// The next one starts when this one is done.
    Done,
}

impl Link {
    /// Whether the next one starts after this result.
    pub fn lets_on(self, succeeded: bool) -> bool {
        match self {
            Self::None => false,
            Self::Success => succeeded,
            Self::Done => true,
        }
    }
}

/// `struct io_uring_sqe`: a copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[allow(missing_docs, reason = "the names are Linux's")]
pub struct Sqe {
    pub opcode: u8,
    pub flags: u8,
    pub ioprio: u16,
    pub fd: i32,
    pub off: u64,
    pub addr: u64,
    pub len: u32,
    pub op_flags: u32,
    pub user_data: u64,
    pub buf_index: u16,
    pub personality: u16,
    pub file_index: u32,
    pub addr3: u64,
    pub pad: u64,
}

/// A transfer of one range that nothing hangs on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Plain {
    /// From memory to the file.
    pub is_write: bool,
    /// The registered buffer in which the range lies.
    pub buffer: Option<u16>,
    /// The descriptor is an index into the ring's own files.
    pub is_fixed_file: bool,
    /// RWF_*.
    pub flags: u32,
}

impl Sqe {
    /// What the entry asks for, if it is plain: a transfer at an offset, without links, drains and
    /// buffers that were lent.
    pub fn plain(&self) -> Option<Plain> {
        // IORING_OP_READ_FIXED, WRITE_FIXED, READ, WRITE.
        let (is_write, buffer) = match self.opcode {
            4 => (false, Some(self.buf_index)),
            5 => (true, Some(self.buf_index)),
            22 => (false, None),
            23 => (true, None),
            _ => return None,
        };
        let is_plain = self.flags & !SqeFlags::FIXED_FILE.bits() == 0
            && self.personality == 0
            && self.off != u64::MAX;
        is_plain.then_some(Plain {
            is_write,
            buffer,
            is_fixed_file: self.flags != 0,
            flags: self.op_flags,
        })
    }
    /// Decodes the bytes; each pattern is an entry.
    pub fn from_bytes(bytes: &[u8; SQE_BYTES]) -> Self {
        let mut rest = Fields(bytes);
        Self {
            opcode: rest.take::<1>()[0],
            flags: rest.take::<1>()[0],
            ioprio: u16::from_ne_bytes(rest.take()),
            fd: i32::from_ne_bytes(rest.take()),
            off: u64::from_ne_bytes(rest.take()),
            addr: u64::from_ne_bytes(rest.take()),
            len: u32::from_ne_bytes(rest.take()),
            op_flags: u32::from_ne_bytes(rest.take()),
            user_data: u64::from_ne_bytes(rest.take()),
            buf_index: u16::from_ne_bytes(rest.take()),
            personality: u16::from_ne_bytes(rest.take()),
            file_index: u32::from_ne_bytes(rest.take()),
            addr3: u64::from_ne_bytes(rest.take()),
            pad: u64::from_ne_bytes(rest.take()),
        }
    }

    /// The same the other way round.
    pub fn to_bytes(&self) -> [u8; SQE_BYTES] {
        let mut bytes = [0; SQE_BYTES];
        let mut rest = &mut bytes[..];
        let mut put = |field: &[u8]| {
            if let Some((first, left)) =
                core::mem::take(&mut rest).split_at_mut_checked(field.len())
            {
                first.copy_from_slice(field);
                rest = left;
            }
        };
        put(&[self.opcode, self.flags]);
        put(&self.ioprio.to_ne_bytes());
        put(&self.fd.to_ne_bytes());
        put(&self.off.to_ne_bytes());
        put(&self.addr.to_ne_bytes());
        put(&self.len.to_ne_bytes());
        put(&self.op_flags.to_ne_bytes());
        put(&self.user_data.to_ne_bytes());
        put(&self.buf_index.to_ne_bytes());
        put(&self.personality.to_ne_bytes());
        put(&self.file_index.to_ne_bytes());
        put(&self.addr3.to_ne_bytes());
        put(&self.pad.to_ne_bytes());
        bytes
    }

    /// The flags; `None` if one is unknown.
    pub fn known_flags(&self) -> Option<SqeFlags> {
        SqeFlags::from_bits(self.flags)
    }

    /// How it ties the next entry to itself.
    pub fn link(&self) -> Link {
        let flags = SqeFlags::from_bits_truncate(self.flags);
        if flags.contains(SqeFlags::IO_HARDLINK) {
            Link::Done
        } else if flags.contains(SqeFlags::IO_LINK) {
            Link::Success
        } else {
            Link::None
        }
    }
}

/// Bytes that are taken from the front; zeros behind the end.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let Some((first, rest)) = self.0.split_first_chunk::<N>() else {
            return [0; N];
        };
        self.0 = rest;
        *first
    }
}
