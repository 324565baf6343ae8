//! Netlink sockets: how `ip` and `ss` ask the kernel, and hear of changes (netlink(7)).
//!
//! # Idea
//! The messages are `core/netlink`'s; here are the sockets that carry them and the answers.
//! A program writes requests; each is done at once, in the writer's call. What is one
//! message goes into the socket's queue. What are many, a *dump*, is produced a datagram at
//! a time as the program reads ([`dump`]), so a hundred thousand connections never lie in
//! memory as messages. Changes are found by comparing what was with what is ([`changes`]):
//! whoever changed it, listeners hear of it in the same way.
//!
//! # Invariants
//! - **Bounded:** a queue holds what its `SO_RCVBUF` says; what does not fit is counted and
//!   the program hears `NoBuffers` once. A socket has one dump at a time.
//! - **Whole:** a datagram holds whole messages.
//!
//! # Lock order
//! A socket's dump (sleeping), `changes::KNOWN`, a shard, `registry::SOCKETS`, a socket's
//! queue, a pollee's lists.
//!
//! # Not here
//! What the network knows (`net::{interface, plan}`), bytes of messages (`netlink`), numbers
//! of errors and the layout of `struct tcp_info`, which the ABI lends us ([`Dialect`]).
//! Programs cannot send to each other, only to the kernel.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod address;
mod answer;
mod changes;
mod diag;
mod dump;
mod file;
mod link;
mod neighbour;
mod options;
mod queue;
mod registry;
mod route;
mod rule;
mod serve;
mod socket;
mod unix_diag;

use alloc::sync::Arc;
use alloc::vec::Vec;

pub use changes::init;
pub use registry::{Listed, list};
pub use socket::NetlinkSocket;

use sync::{Error, Result};

use vfs::socket::{Socket, SocketType, TcpInfo};

/// What a socket speaks (`NETLINK_*`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Protocol {
    /// Links, addresses, routes, neighbours and rules.
    Route = 0,
    /// Sockets.
    SocketDiag = 4,
}

impl Protocol {
    fn of(number: u32) -> Result<Self> {
        match number {
            0 => Ok(Self::Route),
            4 => Ok(Self::SocketDiag),
            _ => Err(Error::ProtocolUnsupported),
        }
    }
}

/// What only the ABI knows and messages tell.
pub struct Dialect {
    /// The number of an error.
    pub error_number: fn(Error) -> u16,
    /// Appends what TCP_INFO tells, as it lies in memory.
    pub tcp_info: fn(&TcpInfo, &mut Vec<u8>),
}

/// A new socket; `dialect` is how its program is spoken to.
///
/// Errors: `SocketTypeUnsupported`, `ProtocolUnsupported`.
pub fn create(
    kind: SocketType,
    protocol: u32,
    dialect: &'static Dialect,
) -> Result<Arc<dyn Socket>> {
    match kind {
        SocketType::Raw | SocketType::Datagram => {
            let protocol = Protocol::of(protocol)?;
            Ok(NetlinkSocket::new(kind, protocol, dialect))
        }
        _ => Err(Error::SocketTypeUnsupported),
    }
}
