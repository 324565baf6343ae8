//! Internet sockets: what programs hold of a network stack.
//!
//! ```text
//! read(2)  ─▶ tcp, udp ─▶ handle ─ a shard of its NetStack (net) ─▶ inet::Stack::recv_with ─▶ the program's memory
//! write(2) ─▶ tcp, udp ─▶ handle ─ a shard of its NetStack (net) ─▶ inet::Stack::send_with ─ Env::transmit ─▶ the card
//! ```
//!
//! # Where to look
//! [`handle`] is a program's hold on one socket, and [`members`] how it is spread over the stack's
//! shards; [`tcp`], [`udp`] and [`raw`] are what read(2) and its kin mean for each protocol; [`options`],
//! [`groups`], [`bound_device`], [`address`] and [`ioctl`] what they share. [`listing`] is what `ss` is
//! shown, and [`stack_tables`] what programs with stacks of their own add to that.
//!
//! Sockets that wait for unknown peers, listeners and datagram sockets, have a member in each shard in
//! which they hear something;
//! `accept` and `recv` look at the calling CPU's first. Nothing blocks under a shard's lock. A copy to
//! or from a program stops at a missing page, which is brought in after the lock is dropped.
//!
//! # Lock order
//! A gathered datagram; a socket's `naming`; then what [`net`] says. The list of [`stack_tables`] is innermost.
//!
//! # Not here
//! Stacks, cards and links, packet sockets (`kernel/net`), protocol (`core/inet`), sockaddr and
//! options' numbers (`kernel/linux-net`); following a thread that moves to another CPU: a connection
//! stays.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod address;
mod bound_device;
mod dial;
mod groups;
mod handle;
mod ioctl;
mod listing;
mod members;
mod options;
mod port_rights;
mod raw;
mod stack_tables;
mod tcp;
mod udp;

use alloc::sync::Arc;

pub use listing::{InetSocket, Position, Sockets};
pub use stack_tables::{StackCounters, counters as stack_counters, register as register_devices};

use sync::{Error, Result};
use vfs::socket::{Family, MessageFlags, Socket, SocketType};

/// A new internet socket; `protocol` is IANA's number, 0 for the type's usual one.
pub fn create(family: Family, kind: SocketType, protocol: u32) -> Result<Arc<dyn Socket>> {
    /// Numbers from here on are no protocols, not even Linux's own.
    const PROTOCOLS_END: u32 = 263;
    const ICMP: u32 = 1;
    const TCP: u32 = 6;
    const UDP: u32 = 17;
    match (kind, protocol) {
        (_, PROTOCOLS_END..) => Err(Error::Invalid),
        (SocketType::Stream, 0 | TCP) => Ok(tcp::TcpSocket::open(family)?),
        (SocketType::Datagram, 0 | UDP) => Ok(udp::UdpSocket::open(family)?),
        // As on Linux, where no group may ping without a raw socket unless it is told to.
        (SocketType::Datagram, ICMP) if family == Family::Inet => Err(Error::AccessDenied),
        (SocketType::Raw, protocol) => Ok(raw::socket::RawSocket::open(family, protocol)?),
        (SocketType::Stream | SocketType::Datagram, _) => Err(Error::ProtocolUnsupported),
        _ => Err(Error::SocketTypeUnsupported),
    }
}

/// Raises SIGPIPE for a send on a broken connection, unless `flags` forbid it.
fn sigpipe(sent: Result<usize>, flags: MessageFlags) -> Result<usize> {
    if sent == Err(Error::BrokenPipe) && !flags.contains(MessageFlags::NOSIGNAL) {
        return Err(task::signal::broken_pipe());
    }
    sent
}
