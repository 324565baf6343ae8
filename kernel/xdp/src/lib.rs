//! AF_XDP: a program owns a link's frames and moves them through rings of its own memory.
//!
//! The problem: a program with a network of its own (a load balancer, another TCP) wants whole
//! frames, many at a time, without a call and a socket's queue for each.
//!
//! The idea: `core/xdp` has the rings and what may stand in them. Here they get memory (`ring`,
//! `umem`), a file (`socket`) and a link (`endpoint`). Where Linux asks a program of BPF which frames a
//! socket gets, a link has an owner (`net::own`): a VNIC's frames are all the socket's while it is bound,
//! and the network stack's again when it is closed. The link layer gives a VNIC what is for its
//! address and its groups, and looks at what it sends; that does not change.
//!
//! A filter ([`filter`]) is a descriptor for a part of a link: made with the right to all of it, passed on to a program
//! without rights, which may bind a queue by it and then receives and sends what the filter admits.
//!
//! # Who runs
//! Frames come in at the end of a batch of the card's, with no lock of the network's: they are
//! copied into the program's chunks, and whoever waits for them is woken once. Frames go out in the
//! program's call, 64 at a time; if the link tells to wait, the rest goes out when it may go on,
//! from the same place where frames come in. Neither needs the program's address space: the
//! memory is pinned (`mm`, `pin`).
//!
//! # Bounds
//! A ring has 65 536 entries at most and counts with those of packet sockets; pinned pages count for
//! the user (RLIMIT_MEMLOCK), and all together are a share of the machine's memory. A call sends what
//! was in the ring when it was made.
//!
//! # Lock order
//! A socket's setup (it sleeps); the receiving or the sending half, never both; then the lane and the
//! inbox of `net`.
//!
//! Not here: sockets that share one UMEM, frames that are not copied (XDP_ZEROCOPY), and the card's own
//! link, whose frames would have to be told apart first.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod endpoint;
mod filter;
mod flow;
mod ring;
mod setup;
mod socket;
mod umem;

use alloc::sync::Arc;

use cred::Capability;
use sync::{Error, Result};
use vfs::socket::{Socket, SocketType};

/// A socket without rings.
///
/// Errors: `NotPermitted` without CAP_NET_RAW; `SocketTypeUnsupported`, `ProtocolUnsupported`.
pub fn create(kind: SocketType, protocol: u32) -> Result<Arc<dyn Socket>> {
    cred::credentials().get().require(Capability::NetRaw)?;
    if kind != SocketType::Raw {
        return Err(Error::SocketTypeUnsupported);
    }
    if protocol != 0 {
        return Err(Error::ProtocolUnsupported);
    }
    Ok(Arc::new(socket::XdpSocket::new()))
}
