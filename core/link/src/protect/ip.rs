//! ip-nospoof: the addresses in IPv4, ARP, IPv6 and neighbour discovery.
//!
//! Neighbour discovery (RFC 4861) names link-layer addresses in options and an IP address
//! in the body, both of which neighbours believe; so both are checked. A fragment of
//! it is refused: nobody may send one (RFC 6980), and its options would escape the check.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use mbuf::Chain;
use wire::MacAddr;

use super::{ARP, Guard, IPV4, IPV6, with_bytes};
use crate::headers::{Header, ICMP6, Packet, Piece};
use crate::prefix::{is_unspecified, link_local};

const ROUTER_SOLICIT: u8 = 133;
const ROUTER_ADVERT: u8 = 134;
const NEIGHBOR_SOLICIT: u8 = 135;
const NEIGHBOR_ADVERT: u8 = 136;
const REDIRECT: u8 = 137;

const SOURCE_OPTION: u8 = 1;
const TARGET_OPTION: u8 = 2;
/// Where the target stands in solicitations and advertisements of neighbours.
const TARGET_AT: usize = 8;

pub(super) fn passes(
    guard: &Guard,
    header: &Header,
    packet: Option<&Packet>,
    frame: &Chain,
) -> bool {
    match header.ether_type {
        ARP => {
            let body_at = header.packet_at();
            with_bytes(frame, body_at, |body| passes_arp(guard, body)) == Some(true)
        }
        IPV4 | IPV6 => packet.is_some_and(|packet| passes_packet(guard, packet, frame)),
        _ => true,
    }
}

fn passes_packet(guard: &Guard, packet: &Packet, frame: &Chain) -> bool {
    if !may_use(guard, packet.src) {
        return false;
    }
    if packet.protocol != ICMP6 || packet.piece == Piece::Later {
        return true;
    }
    let passes = with_bytes(frame, packet.transport_at, |body| {
        let is_discovery = matches!(body.first(), Some(ROUTER_SOLICIT..=REDIRECT));
        !is_discovery || (packet.piece == Piece::Whole && passes_discovery(guard, body))
    });
    passes == Some(true)
}

fn may_use(guard: &Guard, addr: IpAddr) -> bool {
    is_unspecified(addr)
        || addr == IpAddr::V6(link_local(guard.mac))
        || guard.allowed.iter().any(|prefix| prefix.contains(addr))
        || guard.learned.contains(&addr)
}

/// RFC 826 with IPv4: hardware type, protocol type, lengths, operation, sender, target.
fn passes_arp(guard: &Guard, body: &[u8]) -> bool {
    let &[_, _, p0, p1, hardware_len, protocol_len, _, _] = body.first_chunk().unwrap_or(&[0; 8]);
    if u16::from_be_bytes([p0, p1]) != IPV4 || protocol_len != 4 {
        return false;
    }
    let hardware = usize::from(hardware_len);
    if hardware != 0 && hardware != 6 {
        return false;
    }
    let addresses = 2 * (hardware + 4);
    let Some(rest) = body.get(8..8 + addresses) else {
        return false;
    };
    let (sender_mac, rest) = rest.split_at(hardware);
    let sender_ip: [u8; 4] = rest.first_chunk().copied().unwrap_or_default();
    let is_own = hardware == 0 || sender_mac == guard.mac.0;
    is_own && may_use(guard, Ipv4Addr::from(sender_ip).into())
}

fn passes_discovery(guard: &Guard, body: &[u8]) -> bool {
    let (options_at, own_option) = match body[0] {
        ROUTER_SOLICIT => (8, SOURCE_OPTION),
        ROUTER_ADVERT => (16, SOURCE_OPTION),
        NEIGHBOR_SOLICIT => (24, SOURCE_OPTION),
        NEIGHBOR_ADVERT => (24, TARGET_OPTION),
        // A redirect names another station as its target, which is its purpose.
        _ => (40, SOURCE_OPTION),
    };
    let Some(options) = body.get(options_at..) else {
        return false;
    };
    let target_is_own = body[0] != NEIGHBOR_ADVERT || may_use(guard, target_of(body));
    target_is_own && options_name_only(options, own_option, guard.mac)
}

fn target_of(body: &[u8]) -> IpAddr {
    let target: [u8; 16] = body
        .get(TARGET_AT..)
        .and_then(|rest| rest.first_chunk())
        .copied()
        .unwrap_or_default();
    Ipv6Addr::from(target).into()
}

/// Whether every option of `kind` holds `mac`, and all options are whole. A length of
/// zero would never end and is refused.
fn options_name_only(mut options: &[u8], kind: u8, mac: MacAddr) -> bool {
    while let &[option, units, ..] = options {
        let len = usize::from(units) * 8;
        if len == 0 || len > options.len() {
            return false;
        }
        if option == kind && options.get(2..8) != Some(&mac.0) {
            return false;
        }
        options = &options[len..];
    }
    options.is_empty()
}
