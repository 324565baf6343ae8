//! Unix sockets, as `ss -x` asks for them (`struct unix_diag_req`, `struct unix_diag_msg`).

use crate::diag::BY_FAMILY;
use crate::dump::Emit;
use crate::fields::{u8_at, u32_at, u64_at};
use crate::message::Message;
use crate::writer::Body;
use crate::{Flags, ParseError};

/// `AF_UNIX`.
const FAMILY: u8 = 1;
const STRUCTURE_BYTES: usize = 24;

mod kind {
    pub const NAME: u16 = 0;
    pub const PEER: u16 = 2;
    pub const WAITING: u16 = 3;
    pub const QUEUES: u16 = 4;
    pub const SOCKET_MEMORY: u16 = 5;
    pub const SHUTDOWN: u16 = 6;
    pub const USER: u16 = 7;
}

/// A request about Unix sockets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UnixRequest {
    /// All sockets of these states, or the one with the number.
    pub is_dump: bool,
    /// Which states: bit `n` for state `n`.
    pub states: u32,
    /// The number of its file.
    pub inode: u32,
    /// Which attributes are wanted (`UDIAG_SHOW_*`).
    pub wanted: u32,
    /// A number that no other socket has had; all ones for any.
    pub cookie: u64,
}

impl UnixRequest {
    /// Whether a message of the socket family is about Unix sockets.
    pub fn is_meant(message: &Message<'_>) -> bool {
        message.body().first() == Some(&FAMILY)
    }

    /// Reads such a message.
    pub fn parse(message: &Message<'_>) -> Result<Self, ParseError> {
        let header = message.header();
        if header.kind != BY_FAMILY {
            return Err(ParseError::Kind(header.kind));
        }
        let body = message.body();
        if !Self::is_meant(message) {
            return Err(ParseError::Family(u8_at(body, 0)));
        }
        let (has, needs) = (body.len(), STRUCTURE_BYTES);
        if has < needs {
            return Err(ParseError::Truncated { has, needs });
        }
        Ok(Self {
            is_dump: header.flags.any(Flags::DUMP),
            states: u32_at(body, 4),
            inode: u32_at(body, 8),
            wanted: u32_at(body, 12),
            cookie: u64_at(body, 16),
        })
    }

    /// The object with what of it is wanted.
    pub fn pick<'a>(&self, of: &UnixSocket<'a>) -> UnixSocket<'a> {
        let wants = |bit: u32| self.wanted & bit != 0;
        UnixSocket {
            name: of.name.filter(|_| wants(0x1)),
            peer: of.peer.filter(|_| wants(0x4)),
            waiting: of.waiting.filter(|_| wants(0x8)),
            queues: of.queues.filter(|_| wants(0x10)),
            socket_memory: of.socket_memory.filter(|_| wants(0x20)),
            user: of.user.filter(|_| wants(0x40)),
            ..*of
        }
    }
}

/// A Unix socket.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct UnixSocket<'a> {
    /// Linux's number of its type: 1 stream, 2 datagram, 5 seqpacket.
    pub socket_type: u8,
    /// As TCP's states: 1 connected, 7 not, 10 listening.
    pub state: u8,
    /// The number of its file.
    pub inode: u32,
    /// A number that no other socket has had.
    pub cookie: u64,
    /// Its name; an abstract one starts with a zero.
    pub name: Option<&'a [u8]>,
    /// The number of its peer's file.
    pub peer: Option<u32>,
    /// The numbers of connections that wait to be accepted.
    pub waiting: Option<&'a [u32]>,
    /// Bytes that wait, and that are on their way; of a listener connections that wait, and
    /// how many may.
    pub queues: Option<[u32; 2]>,
    /// `SK_MEMINFO_*` in order.
    pub socket_memory: Option<[u32; 9]>,
    /// `SHUT_*` bits.
    pub shutdown: Option<u8>,
    /// The owner.
    pub user: Option<u32>,
}

impl Emit for UnixSocket<'_> {
    fn kind(&self) -> u16 {
        BY_FAMILY
    }

    fn emit(&self, to: &mut Body) {
        to.u8(FAMILY).u8(self.socket_type).u8(self.state).u8(0);
        to.u32(self.inode).bytes(&self.cookie.to_le_bytes());
        to.optional(kind::NAME, self.name)
            .optional_u32(kind::PEER, self.peer)
            .optional_words(kind::WAITING, self.waiting)
            .optional_words(kind::QUEUES, self.queues)
            .optional_words(kind::SOCKET_MEMORY, self.socket_memory)
            .optional_u8(kind::SHUTDOWN, self.shutdown)
            .optional_u32(kind::USER, self.user);
    }
}
