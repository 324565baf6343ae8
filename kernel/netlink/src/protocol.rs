//! What is spoken on a socket, and what only the ABI can say there.

use alloc::vec::Vec;

use sync::{Error, Result};
use vfs::socket::TcpInfo;

/// What a socket speaks (`NETLINK_*`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Protocol {
    /// Links, addresses, routes, neighbours and rules.
    Route = 0,
    /// Sockets.
    SocketDiag = 4,
}

impl Protocol {
    pub(super) fn of(number: u32) -> Result<Self> {
        match number {
            0 => Ok(Self::Route),
            4 => Ok(Self::SocketDiag),
            _ => Err(Error::ProtocolUnsupported),
        }
    }
}

/// What only the ABI knows and messages tell.
pub struct Abi {
    /// The number of an error.
    pub error_number: fn(Error) -> u16,
    /// Appends what TCP_INFO tells, as it lies in memory.
    pub tcp_info: fn(&TcpInfo, &mut Vec<u8>),
}
