//! What `ss` is told of a socket (`struct inet_diag_msg`).

use core::net::SocketAddr;

use crate::diag::{BY_FAMILY, SocketId};
use crate::dump::Emit;
use crate::ip;
use crate::writer::Body;

mod kind {
    pub const MEMORY: u16 = 1;
    pub const INFO: u16 = 2;
    pub const CONGESTION: u16 = 4;
    pub const SERVICE: u16 = 5;
    pub const SOCKET_MEMORY: u16 = 7;
    pub const SHUTDOWN: u16 = 8;
    pub const ONLY_V6: u16 = 11;
}

/// A socket of IP.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DiagSocket<'a> {
    /// Linux's number of the TCP state; other protocols use established and closed.
    pub state: u8,
    /// What the timer waits for: 0 nothing, 1 an acknowledgement, 2 keep-alive, 3 TIME_WAIT,
    /// 4 a window.
    pub timer: u8,
    /// How often it has fired.
    pub retransmits: u8,
    /// Milliseconds until it fires.
    pub expires_ms: u32,
    /// Which socket.
    pub id: SocketId,
    /// Bytes that the program has not read; of a listener, connections to accept.
    pub receive_queue: u32,
    /// Bytes without an acknowledgement; of a listener, how many connections may wait.
    pub send_queue: u32,
    /// The owner.
    pub user: u32,
    /// The number of its file.
    pub inode: u32,
    /// `SHUT_*` bits.
    pub shutdown: Option<u8>,
    /// The traffic class.
    pub service: Option<u8>,
    /// Whether an IPv6 socket refuses IPv4.
    pub is_only_v6: Option<bool>,
    /// The congestion control's name.
    pub congestion: Option<&'a [u8]>,
    /// `struct tcp_info`, as `TCP_INFO` returns it.
    pub info: Option<&'a [u8]>,
    /// Bytes: received, to be sent, promised, and in all (`struct inet_diag_meminfo`).
    pub memory: Option<[u32; 4]>,
    /// `SK_MEMINFO_*` in order.
    pub socket_memory: Option<[u32; 9]>,
}

impl Emit for DiagSocket<'_> {
    fn kind(&self) -> u16 {
        BY_FAMILY
    }

    fn emit(&self, to: &mut Body) {
        to.u8(match self.id.local {
            SocketAddr::V4(_) => ip::V4,
            SocketAddr::V6(_) => ip::V6,
        });
        to.u8(self.state).u8(self.timer).u8(self.retransmits);
        self.id.emit(to);
        to.u32(self.expires_ms).u32(self.receive_queue);
        to.u32(self.send_queue).u32(self.user).u32(self.inode);
        to.optional_u8(kind::SHUTDOWN, self.shutdown)
            .optional_u8(kind::SERVICE, self.service)
            .optional_u8(kind::ONLY_V6, self.is_only_v6.map(u8::from))
            .optional(kind::INFO, self.info)
            .optional_text(kind::CONGESTION, self.congestion)
            .optional_words(kind::MEMORY, self.memory)
            .optional_words(kind::SOCKET_MEMORY, self.socket_memory);
    }
}
