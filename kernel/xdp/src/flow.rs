//! A connection that goes on at another queue of the link, or in its network stack (`docs/rings.md`, "Several queues").
//!
//! Whoever has a queue could have the flow of any connection by a SYN-ACK that it sends, so no more rights are needed
//! than those that made the queue. There is nothing like it on Linux.

use core::net::{Ipv4Addr, SocketAddr};

use base::VirtAddr;
use link::queues::{Ends, QUEUES_MAX, STACK};
use mm::user;
use net::{Ownership, Redirected};
use sync::{Error, Result};

/// `_IOW(0xda, 3, struct xdp_flow)`: of a bound AF_XDP socket.
pub const MOVE: u32 = 0x4010_da03;

/// `struct xdp_flow`: our address and the peer's, our port and the peer's as numbers, the queue, a protocol, and zero.
const FLOW_BYTES: usize = 16;

/// The queue of `struct xdp_flow` that is the link's network stack.
const TO_STACK: u16 = u16::MAX;

/// Protocols of IP whose ports may go; a connection's is left out.
const NO_PROTOCOL: u8 = 0;
const TCP: u8 = 6;
const UDP: u8 = 17;

/// Has what a peer sends to one of our ports go to another queue, or to the stack; with a protocol, and without addresses and a
/// peer's port, what else comes to our port. What of it has come is in this queue's rings when the call returns, and no more comes.
///
/// Errors: `BadAddress`, `Invalid` for what is neither, and those of [`Ownership::redirect`].
pub fn redirect(link: &Ownership, argument: u64) -> Result<usize> {
    let mut bytes = [0; FLOW_BYTES];
    user::copy_in(VirtAddr(argument), &mut bytes)?;
    let [
        l0,
        l1,
        l2,
        l3,
        p0,
        p1,
        p2,
        p3,
        a0,
        a1,
        b0,
        b1,
        q0,
        q1,
        protocol,
        0,
    ] = bytes
    else {
        return Err(Error::Invalid);
    };
    let (local, peer) = ([l0, l1, l2, l3], [p0, p1, p2, p3]);
    let [port, peer_port] = [[a0, a1], [b0, b1]].map(u16::from_ne_bytes);
    let end = |host: [u8; 4], port| SocketAddr::from((Ipv4Addr::from(host), port));
    let what = match (protocol, local, peer, peer_port) {
        (NO_PROTOCOL, ..) => Redirected::Flow(Ends {
            local: end(local, port),
            peer: end(peer, peer_port),
        }),
        (TCP | UDP, [0, 0, 0, 0], [0, 0, 0, 0], 0) if port != 0 => Redirected::Port(protocol, port),
        _ => return Err(Error::Invalid),
    };
    let to = match u16::from_ne_bytes([q0, q1]) {
        TO_STACK => STACK,
        queue if queue < QUEUES_MAX => queue,
        _ => return Err(Error::WrongDevice),
    };
    link.redirect(what, to)?;
    Ok(0)
}
