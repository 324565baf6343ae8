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
//! # Where to look
//! Each module knows only those before it here, but that a socket joins those who hear of
//! [`changes`], which are told through the [`socket::registry`]:
//!
//! ```text
//! protocol, answer     what is spoken; bytes of answers, refusals
//! endpoint, requester  whom an answer is for, with what waits there; a request
//! objects, diag        what `ip` and `ss` can ask about
//! dump, serve          answers of many messages; who does a request
//! socket, changes      the sockets, as a program has them; what is news
//! ```
//!
//! # Invariants
//! - **Bounded:** a queue holds what its `SO_RCVBUF` says; what does not fit is counted and
//!   the program hears `NoBuffers` once. A socket has one dump at a time.
//! - **Whole:** a datagram holds whole messages.
//!
//! # Lock order
//! A socket's dump (sleeping), `changes::KNOWN`, a shard, `socket::registry::SOCKETS`, a socket's
//! queue, a pollee's lists.
//!
//! # Not here
//! What the network knows (`net::{interface, plan}`), bytes of messages (`netlink`), numbers
//! of errors and the layout of `struct tcp_info`, which the ABI lends us ([`Abi`]).
//! Programs cannot send to each other, only to the kernel.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod answer;
mod changes;
mod diag;
mod dump;
mod endpoint;
mod objects;
mod protocol;
mod requester;
mod serve;
mod socket;

use alloc::sync::Arc;

pub use changes::init;
pub use protocol::{Abi, Protocol};
pub use socket::NetlinkSocket;
pub use socket::registry::{Listed, list};

use sync::{Error, Result};

use vfs::socket::{Socket, SocketType};

/// A new socket; `dialect` is how its program is spoken to.
///
/// Errors: `SocketTypeUnsupported`, `ProtocolUnsupported`.
pub fn create(kind: SocketType, protocol: u32, dialect: &'static Abi) -> Result<Arc<dyn Socket>> {
    match kind {
        SocketType::Raw | SocketType::Datagram => {
            let protocol = Protocol::of(protocol)?;
            Ok(NetlinkSocket::new(kind, protocol, dialect))
        }
        _ => Err(Error::SocketTypeUnsupported),
    }
}
