//! A connection that goes on at another queue of the link (`docs/rings.md`, "Several queues").
//!
//! Whoever has a queue could have the flow of any connection by a SYN-ACK that it sends, so no more rights are needed
//! than those that made the queue. There is nothing like it on Linux.

use core::net::{Ipv4Addr, SocketAddr};

use base::VirtAddr;
use link::queues::Ends;
use mm::user;
use net::Ownership;
use sync::{Error, Result};

/// `_IOW(0xda, 3, struct xdp_flow)`: of a bound AF_XDP socket.
pub const MOVE: u32 = 0x4010_da03;

/// `struct xdp_flow`: our address and the peer's, our port and the peer's as numbers, the queue, and zero.
const FLOW_BYTES: usize = 16;

/// Has what a peer sends to one of our ports go to another queue. What of it has come is in this queue's rings when the
/// call returns, and no more comes.
///
/// Errors: `BadAddress`, `Invalid` for what is no flow, and those of [`Ownership::move_flow`].
pub fn move_flow(link: &Ownership, argument: u64) -> Result<usize> {
    let mut bytes = [0; FLOW_BYTES];
    user::copy_in(VirtAddr(argument), &mut bytes)?;
    let [l0, l1, l2, l3, p0, p1, p2, p3, a0, a1, b0, b1, q0, q1, 0, 0] = bytes else {
        return Err(Error::Invalid);
    };
    let end = |host: [u8; 4], port: [u8; 2]| {
        SocketAddr::from((Ipv4Addr::from(host), u16::from_ne_bytes(port)))
    };
    let ends = Ends {
        local: end([l0, l1, l2, l3], [a0, a1]),
        peer: end([p0, p1, p2, p3], [b0, b1]),
    };
    link.move_flow(ends, u16::from_ne_bytes([q0, q1]))?;
    Ok(0)
}
