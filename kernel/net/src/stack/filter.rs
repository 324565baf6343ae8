//! Shows what arrives for an internet socket to its filter.
//!
//! The stack asks from the transport header on and gives the IP headers beside; the link header
//! is gone by then. In its place is what a packet that stays within the machine has on Linux: a
//! type and no addresses.

use alloc::vec::Vec;

use capture::{Frame, Sender};
use mbuf::Chain;
use wire::{ETHERNET_HEADER_BYTES, EtherType};

use super::Shared;
use super::interface::LOOPBACK;
use super::waiter::Waiter;

/// Where IPv4's source lies in its header; its first byte says when it is this machine's.
const V4_SOURCE_AT: usize = 12;

/// How many bytes of a packet, which came by the interface `by`, the owner of `waiter` wants.
#[cold]
pub(crate) fn keep(
    waiter: &Waiter,
    shared: &Shared,
    by: u32,
    headers: &[u8],
    packet: &Chain,
) -> usize {
    let mut parts: Vec<&[u8]> = Vec::new();
    if parts.try_reserve_exact(packet.parts() + 2).is_err() {
        return 0;
    }
    let protocol = match headers.first().map(|byte| byte >> 4) {
        Some(6) => EtherType::Ipv6.number(),
        _ => EtherType::Ipv4.number(),
    };
    let mut link = [0; ETHERNET_HEADER_BYTES];
    let [.., high, low] = &mut link;
    [*high, *low] = protocol.to_be_bytes();
    parts.extend([&link[..], headers]);
    parts.extend(packet.slices());
    let number = if is_local(headers) { LOOPBACK } else { by };
    let frame = Frame {
        parts: &parts,
        network: link.len(),
        interface: number,
        hardware_type: shared.interfaces.hardware_type(number),
        protocol,
        packet_type: 0,
        sender: Sender::default(),
        tag: None,
        flow_hash: 0,
        checksum: 0,
    };
    waiter.filter.keep(&frame, link.len() + headers.len())
}

/// Whether a packet with these headers comes from this machine.
fn is_local(headers: &[u8]) -> bool {
    const V6_LOOPBACK: [u8; 16] = core::net::Ipv6Addr::LOCALHOST.octets();
    match headers.first().map(|byte| byte >> 4) {
        Some(6) => headers.get(8..24) == Some(&V6_LOOPBACK),
        _ => headers.get(V4_SOURCE_AT) == Some(&127),
    }
}
