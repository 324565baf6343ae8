//! The network: stacks, their card, and the sockets that programs hold.
//!
//! A [`NetStack`] is a value ([`stack`]): programs of a network namespace hold one.
//!
//! ```text
//! one CPU, or one pair of queues:
//! card ─ FramePort::receive ─▶ device/poll ─▶ inet::Stack ─ Env::wake (stack/env) ─▶ a socket's Pollee
//!
//! several: each CPU has a pair of the card, a shard and an inbox
//! card ─▶ device/ring ─ link::steer ─▶ device/inbox of the owner ─▶ device/poll ─▶ its inet::Stack
//!
//! read(2) ─▶ tcp, udp ─▶ inet::Stack::recv_with ─▶ the program's memory
//! write(2) ─▶ tcp, udp ─▶ inet::Stack::send_with ─ Env::transmit ─▶ FramePort
//! ```
//!
//! # Where to look
//! [`device`] is the card and the rhythm of polling; [`stack`] what is of one stack; [`socket`]
//! what all sockets share, with [`tcp`], [`udp`], [`raw`] and [`packet`] above it; [`datalink`] links
//! over the card; [`listing`] what `ss` is shown.
//!
//! # Shards
//! A stack (`core/inet`) behind one spin lock is a *shard* ([`stack::shard`]); a batch of frames
//! gives way to a program that waits for the lock ([`stack::locked`]). A connection lives
//! in the shard that a hash of its ends names ([`device::steer`]), on the CPU of its ring. Sockets
//! that wait for unknown peers, listeners and datagram sockets, have a member in each shard;
//! `accept` and `recv` look at the calling CPU's first ([`socket::handle`]). Nothing blocks under
//! a shard's lock. A copy to or from a program stops at a missing page, which is brought in
//! after the lock is dropped. Each interface beside the card ([`datalink`]) is a shard more: it has
//! the connections and addresses of that interface, and [`stack::egress`] says what leaves by it.
//!
//! # Polling
//! While the machine is loaded it polls: the device is asked whenever a program waits
//! for readiness, frames to send are announced once per batch ([`device::poll`]). The doorbell is
//! armed only before a CPU halts.
//!
//! # Lock order
//! A gathered datagram; a socket's `naming`; a stack's `settings`; one shard, never two; a ring; a queue of an inbox;
//! published routes; what interfaces reach; the list of interfaces; a pollee's lists; run queues; a CPU's timers. A ring is also taken
//! without a shard.
//!
//! # Not here
//! Protocol (`core/inet`), devices (`drivers`), sockaddr and options' numbers
//! (`kernel/linux-net`); following a thread that moves to another CPU: a connection stays.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod datalink;
mod device;
mod listing;
pub mod packet;
mod raw;
mod refusal;
mod socket;
mod stack;
mod tcp;
mod udp;

use alloc::sync::Arc;

pub use datalink::{move_interface, register as register_devices, restore as restore_links};
pub use device::config::{Conduct, Config, attach_pairs, configure, init};
pub use device::config6::{Config6, configure6};
pub use device::memory::{AREA_BYTES, PacketBuffers, packet_buffers, packet_pool};
pub use device::poll::{drain, poll_now};
pub use device::ring::{RingCounters, port_counters, ring_counters};
pub use linkctl::{FILE as LINKS_FILE, FILE_BYTES_MAX as LINKS_FILE_BYTES_MAX};
pub use listing::{InetSocket, Position, Sockets};
pub use stack::changes::{look_for_changes, on_changes};
pub use stack::env::Port;
pub use stack::interface::{CARD, Interface, InterfaceFlags, LOOPBACK, Traffic};
pub use stack::{NetStack, current_stack, first, of_namespace, plan};

use sync::{Error, Result};
use vfs::socket::{Family, MessageFlags, Socket, SocketType};

/// Exceptions (ARP, ICMP errors, DHCP) dropped between shards.
pub fn exceptions_dropped() -> u64 {
    device::inbox::dropped()
}

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
