//! Frames for tests.

extern crate std;

use core::net::IpAddr;
use std::vec::Vec;

use super::model_tx::sum_of;
use super::rig::MAC;

pub(super) const TCP: u8 = 6;
pub(super) const UDP: u8 = 17;

/// An Ethernet frame to the card.
pub(super) fn ethernet(to: [u8; 6], ethertype: [u8; 2], payload: &[u8]) -> Vec<u8> {
    [&to[..], &[2, 0, 0, 0, 0, 9], &ethertype, payload].concat()
}

/// A frame to the card in a VLAN.
pub(super) fn tagged(tag: u16, payload: &[u8]) -> Vec<u8> {
    let tag = tag.to_be_bytes();
    ethernet(MAC, [0x81, 0], &[&tag[..], &[0x88, 0xb5], payload].concat())
}

/// A packet with ports, as a stack hands it over: its transport checksum holds the sum of the
/// pseudo header.
pub(super) fn packet(
    protocol: u8,
    (src, sport): (&str, u16),
    (dst, dport): (&str, u16),
    payload: &[u8],
) -> Vec<u8> {
    let header_len = if protocol == TCP { 20 } else { 8 };
    let mut transport = std::vec![0; header_len];
    transport[..2].copy_from_slice(&sport.to_be_bytes());
    transport[2..4].copy_from_slice(&dport.to_be_bytes());
    if protocol == TCP {
        transport[4..8].copy_from_slice(&0xffff_ff00_u32.to_be_bytes());
        transport[12] = 5 << 4;
    }
    transport.extend(payload);
    let len = transport.len();
    let (src, dst): (IpAddr, IpAddr) = (src.parse().unwrap(), dst.parse().unwrap());
    let (ethertype, mut ip, addresses) = match (src, dst) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => {
            let addresses = [src.octets(), dst.octets()].concat();
            let [high, low] = (len as u16 + 20).to_be_bytes();
            let ip = [0x45, 0, high, low, 0, 0, 0x40, 0, 64, protocol, 0, 0];
            ([8, 0], ip.to_vec(), addresses)
        }
        (IpAddr::V6(src), IpAddr::V6(dst)) => {
            let addresses = [src.octets(), dst.octets()].concat();
            let [high, low] = (len as u16).to_be_bytes();
            let ip = [0x60, 0, 0, 0, high, low, protocol, 64];
            ([0x86, 0xdd], ip.to_vec(), addresses)
        }
        _ => panic!("addresses of one kind"),
    };
    ip.extend(&addresses);
    if ethertype == [8, 0] {
        let sum = !sum_of(&ip, 0);
        ip[10..12].copy_from_slice(&sum.to_be_bytes());
    }
    let pseudo = sum_of(&addresses, len as u32 + u32::from(protocol));
    let field = if protocol == TCP { 16 } else { 6 };
    transport[field..field + 2].copy_from_slice(&pseudo.to_be_bytes());
    ethernet(MAC, ethertype, &[ip, transport].concat())
}

/// Whether lengths and checksums of a packet as it goes over the wire are right.
pub(super) fn is_sound(frame: &[u8]) -> bool {
    let ip = &frame[14..];
    let (addresses, header, protocol, len) = match frame[12..14] {
        [8, 0] => {
            let len = usize::from(u16::from_be_bytes([ip[2], ip[3]])) - 20;
            (&ip[12..20], 20, ip[9], len)
        }
        _ => {
            let len = usize::from(u16::from_be_bytes([ip[4], ip[5]]));
            (&ip[8..40], 40, ip[6], len)
        }
    };
    let transport = &ip[header..];
    let pseudo = u32::from(sum_of(addresses, len as u32 + u32::from(protocol)));
    let is_ip_sound = header == 40 || sum_of(&ip[..20], 0) == 0xffff;
    is_ip_sound && transport.len() == len && sum_of(transport, pseudo) == 0xffff
}
