//! Messages in a datagram (`struct nlmsghdr`): `len[4] type[2] flags[2] sequence[4] port[4]`.

use core::ops::BitOr;

use crate::attribute::Attributes;
use crate::fields::{u16_at, u32_at};

/// Bytes of a header.
pub const HEADER_BYTES: usize = 16;

/// `NLM_F_*`: a set of flags; the upper ones mean different things by type.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Flags(pub u16);

impl Flags {
    /// None.
    pub const NONE: Self = Self(0);
    /// From a program to the kernel.
    pub const REQUEST: Self = Self(0x1);
    /// One of several answers; [`crate::Dump`] ends them.
    pub const MULTI: Self = Self(0x2);
    /// The program wants an acknowledgement in any case.
    pub const ACK: Self = Self(0x4);
    /// Objects changed during the dump, so it may contradict itself.
    pub const DUMP_INTERRUPTED: Self = Self(0x10);
    /// The dump holds only what the request's values select.
    pub const DUMP_FILTERED: Self = Self(0x20);
    /// Get: all objects. Linux sets both bits and looks for any.
    pub const DUMP: Self = Self(0x300);
    /// New: in place of the one that exists.
    pub const REPLACE: Self = Self(0x100);
    /// New: not if there is one.
    pub const EXCLUSIVE: Self = Self(0x200);
    /// New: if there is none.
    pub const CREATE: Self = Self(0x400);
    /// New: behind those that exist.
    pub const APPEND: Self = Self(0x800);
    /// Error: the request is not repeated beyond its header.
    pub const CAPPED: Self = Self(0x100);
    /// Error: attributes follow.
    pub const ACK_ATTRIBUTES: Self = Self(0x200);

    /// Whether any of these is set.
    pub const fn any(self, of: Self) -> bool {
        self.0 & of.0 != 0
    }
}

impl BitOr for Flags {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// What a header says but for the length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// The message's type; below 16 they are netlink's own.
    pub kind: u16,
    /// Flags.
    pub flags: Flags,
    /// The requester's number, repeated in each answer.
    pub sequence: u32,
    /// The socket's number on the program's side.
    pub port: u32,
}

/// A message that lies within its datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Message<'a> {
    bytes: &'a [u8],
}

impl<'a> Message<'a> {
    /// Header and all.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// What is behind the header.
    pub fn body(&self) -> &'a [u8] {
        self.bytes.get(HEADER_BYTES..).unwrap_or_default()
    }

    /// The header.
    pub fn header(&self) -> Header {
        Header {
            kind: u16_at(self.bytes, 4),
            flags: Flags(u16_at(self.bytes, 6)),
            sequence: u32_at(self.bytes, 8),
            port: u32_at(self.bytes, 12),
        }
    }

    /// The attributes behind a structure of that many bytes.
    pub fn attributes(&self, structure_bytes: usize) -> Attributes<'a> {
        let offset = HEADER_BYTES + structure_bytes.next_multiple_of(4);
        Attributes::new(self.bytes.get(offset..).unwrap_or_default(), offset)
    }
}

/// The messages of a datagram. What does not hold a whole message ends them; programs pad
/// with zeros.
#[derive(Clone, Debug)]
pub struct Messages<'a>(&'a [u8]);

impl<'a> Messages<'a> {
    /// Of one datagram.
    pub fn new(datagram: &'a [u8]) -> Self {
        Self(datagram)
    }
}

impl<'a> Iterator for Messages<'a> {
    type Item = Message<'a>;

    fn next(&mut self) -> Option<Message<'a>> {
        let len = u32_at(self.0, 0) as usize;
        let bytes = self.0.get(..len).filter(|_| len >= HEADER_BYTES)?;
        self.0 = self.0.get(len.next_multiple_of(4)..).unwrap_or_default();
        Some(Message { bytes })
    }
}
