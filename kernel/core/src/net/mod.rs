//! The network: one stack, its device, and the sockets that programs hold.
//!
//! ```text
//! device ─ FramePort::receive ─▶ poll.rs ─▶ inet::Stack ─ Env::wake ─▶ a socket's Pollee
//! read(2) ─▶ tcp.rs / udp.rs ─▶ inet::Stack::recv_with ─▶ the program's memory
//! write(2) ─▶ tcp.rs / udp.rs ─▶ inet::Stack::send_with ─ Env::transmit ─▶ FramePort
//! ```
//!
//! The stack (`core/inet`) is one shard behind one spin lock ([`shard::lock`]); nothing
//! blocks under it. A copy to or from a program stops at a missing page, which is
//! brought in after the lock is dropped.
//!
//! While the machine is loaded it polls: the device is asked whenever a program waits
//! for readiness, frames to send are announced once per batch (`poll`). The doorbell is
//! armed only before a CPU halts.
//!
//! Lock order: the shard, then a pollee's lists, then run queues.
//! Not here: protocol (`core/inet`), devices (`drivers`), sockaddr and options' numbers
//! (`kernel/linux/socket`).

mod address;
mod config;
mod config6;
mod error;
mod groups;
mod handle;
mod interface;
mod ioctl;
mod memory;
mod options;
pub mod plan;
mod poll;
mod raw;
mod raw_frame;
mod raw_options;
mod raw_socket;
mod reports;
mod shard;
mod sockets;
mod tcp;
mod tcp_socket;
mod udp;
mod udp_socket;

use alloc::sync::Arc;

pub use config::{Config, configure, init};
pub use config6::{Config6, configure6};
pub use interface::{CARD, Interface, InterfaceFlags, LOOPBACK, Traffic, interface, interfaces};
pub use memory::{AREA_BYTES, packet_pool, packets_in_use};
pub use poll::{attach, drain, poll_now};
pub use raw_frame::{send_frame, send_to_ourselves};
pub use shard::{stats, with_stack};
pub use sockets::{InetSocket, Position, Sockets, number_of};

use crate::error::{Error, Result};
use crate::socket::{Family, MessageFlags, Socket, SocketType};

/// A new internet socket; `protocol` is IANA's number, 0 for the type's usual one.
pub fn create(family: Family, kind: SocketType, protocol: u32) -> Result<Arc<dyn Socket>> {
    const ICMP: u32 = 1;
    const TCP: u32 = 6;
    const UDP: u32 = 17;
    match (kind, protocol) {
        (SocketType::Stream, 0 | TCP) => Ok(tcp::TcpSocket::open(family)?),
        (SocketType::Datagram, 0 | UDP) => Ok(udp::UdpSocket::open(family)?),
        // As on Linux, where no group may ping without a raw socket unless it is told to.
        (SocketType::Datagram, ICMP) if family == Family::Inet => Err(Error::AccessDenied),
        (SocketType::Raw, protocol) if family == Family::Inet => {
            Ok(raw_socket::RawSocket::open(protocol)?)
        }
        (SocketType::Stream | SocketType::Datagram, _) => Err(Error::ProtocolUnsupported),
        _ => Err(Error::SocketTypeUnsupported),
    }
}

/// Raises SIGPIPE for a send on a broken connection, unless `flags` forbid it.
fn sigpipe(sent: Result<usize>, flags: MessageFlags) -> Result<usize> {
    if sent == Err(Error::BrokenPipe) && !flags.contains(MessageFlags::NOSIGNAL) {
        crate::signal::raise_broken_pipe();
    }
    sent
}
