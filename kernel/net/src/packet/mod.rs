//! Packet sockets: frames as they pass an interface (packet(7)).
//!
//! # Problem
//! A sniffer wants to see what passes without taking part. Most of the time there is none,
//! and then nobody shall pay for it; when there is one, it may be slow, stopped or hostile.
//!
//! # Idea
//! Frames pass three points: into the stack, out of it, and from loopback to itself. Each
//! calls [`received`], [`sent`] or [`looped`], which look at one counter and return while
//! nobody listens. Otherwise each [`Listener`](listener::Listener) decides by interface,
//! protocol and filter (`core/bpf`) before anything is copied, and then stores the packet in
//! a ring that it shares with its program (`core/capture`) or in a queue that recvmsg(2)
//! empties.
//!
//! ```text
//! net ─ received, sent, looped ─▶ tap ─▶ each listener: filter ─▶ ring ─▶ the program's memory
//!                                                            └──▶ queue ─▶ recvmsg
//! ```
//!
//! # Bounds
//! Rings have together at most a share of memory ([`memory`]), a queue has the bytes of
//! SO_RCVBUF. What does not fit is dropped and counted by reason ([`drops`]).
//!
//! Frames of a link that a program owns pass no stack; the link's NIC shows them to the stack where it is
//! (`datalink`), once it has found by one load that there are packet sockets at all ([`is_watched`]). Those of a card that a program
//! drives pass nobody: its program shows them ([`mirror`]).
//!
//! Lock order: a shard of `net`, the list of listeners, a listener, its pollee.
//! Not here: cards' filters (all of ours let all frames pass), rings of version 1 and
//! for sending, fan-out.

mod drops;
mod frame;
mod listener;
mod mirror;
mod options;
mod queue;
mod ring;
mod send;
mod socket;
mod tap;
mod watching;

use alloc::sync::Arc;

pub use drops::drops;
pub use listener::{Binding, Listener};
pub use mirror::register;
pub use queue::Packet;
pub use send::chain_of;
pub(crate) use tap::now;
pub use tap::{Entry, sockets};
pub(crate) use tap::{looped, received, sent};
pub(crate) use watching::is_watched;

use cred::Capability;
use sync::{Error, Result};

use vfs::socket::{Socket, SocketType};

/// All EtherTypes (ETH_P_ALL).
pub const PROTOCOL_ALL: u16 = 3;

/// A new packet socket that hears of `protocol` on all interfaces; of nothing if that is 0.
///
/// Errors: `NotPermitted` without CAP_NET_RAW.
pub fn create(kind: SocketType, protocol: u16) -> Result<Arc<dyn Socket>> {
    cred::credentials().get().require(Capability::NetRaw)?;
    let view = match kind {
        SocketType::Raw => capture::View::Link,
        SocketType::Datagram => capture::View::Network,
        SocketType::Stream | SocketType::SeqPacket => return Err(Error::SocketTypeUnsupported),
    };
    Ok(socket::PacketSocket::new(view, protocol)?)
}
