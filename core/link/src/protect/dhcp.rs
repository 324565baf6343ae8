//! dhcp-nospoof, and the parts of DHCP that it and learning read.
//!
//! DHCPv4 (RFC 2131): the hardware address and option 61 name the client. DHCPv6 (RFC
//! 8415): option 1 does, its DUID. A message that could hide a second name (two of the option,
//! options continued in other fields, a relay's envelope) fails, as does one that ends
//! too early.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use mbuf::Chain;
use wire::{MacAddr, UDP_HEADER_BYTES};

use super::cid::{is_own_duid, is_own_id};
use super::{Guard, IPV4, IPV6, with_bytes};
use crate::headers::{Header, Packet, Piece, UDP};

/// Ports of servers (BOOTP and DHCPv6) and clients.
const SERVER4: u16 = 67;
const CLIENT4: u16 = 68;
const CLIENT6: u16 = 546;
const SERVER6: u16 = 547;

const MAGIC: [u8; 4] = [0x63, 0x82, 0x53, 0x63];
const FIXED4: usize = 236;
const OPTION_PAD: u8 = 0;
const OPTION_LEASE: u8 = 51;
const OPTION_OVERLOAD: u8 = 52;
const OPTION_MESSAGE: u8 = 53;
const OPTION_CLIENT_ID: u8 = 61;
const OPTION_END: u8 = 255;

const OPTION6_DUID: u16 = 1;
const OPTION6_IA_NA: u16 = 3;
const OPTION6_IA_TA: u16 = 4;
const OPTION6_ADDRESS: u16 = 5;
const RELAY_FORWARD: u8 = 12;
/// Addresses of one reply that are looked at.
const ADDRESSES_MAX: usize = 16;

/// Which DHCP a packet belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DhcpVersion {
    /// IPv4, from the client or from the server.
    V4,
    /// IPv6.
    V6,
}

/// The DHCP that a packet is, if it is sent to a server.
pub(crate) fn to_server(packet: &Packet) -> Option<DhcpVersion> {
    match (packet.protocol, packet.src, packet.ports?.1) {
        (UDP, IpAddr::V4(_), SERVER4) => Some(DhcpVersion::V4),
        (UDP, IpAddr::V6(_), SERVER6) => Some(DhcpVersion::V6),
        _ => None,
    }
}

/// The DHCP that a packet is, if it is sent to a client.
pub(crate) fn to_client(packet: &Packet) -> Option<DhcpVersion> {
    match (packet.protocol, packet.src, packet.ports?.1) {
        (UDP, IpAddr::V4(_), CLIENT4) => Some(DhcpVersion::V4),
        (UDP, IpAddr::V6(_), CLIENT6) => Some(DhcpVersion::V6),
        _ => None,
    }
}

pub(super) fn passes(
    guard: &Guard,
    header: &Header,
    packet: Option<&Packet>,
    frame: &Chain,
) -> bool {
    if !matches!(header.ether_type, IPV4 | IPV6) {
        return true;
    }
    let Some(packet) = packet else {
        return false;
    };
    let Some(dialect) = to_server(packet) else {
        return true;
    };
    let body_at = packet.transport_at + UDP_HEADER_BYTES;
    let passes = with_bytes(frame, body_at, |body| match dialect {
        DhcpVersion::V4 => passes_v4(guard, body),
        DhcpVersion::V6 => passes_v6(guard, body),
    });
    packet.piece == Piece::Whole && passes == Some(true)
}

fn passes_v4(guard: &Guard, body: &[u8]) -> bool {
    let Some(message) = Message4::parse(body) else {
        return false;
    };
    if message.hardware_len == 6 && message.client_mac != guard.mac {
        return false;
    }
    message
        .client_id
        .is_none_or(|id| is_own_id(id, guard.mac) || is_allowed(guard, id))
}

fn passes_v6(guard: &Guard, body: &[u8]) -> bool {
    if guard.all_client_ids {
        return true;
    }
    let Some(message) = Message6::parse(body) else {
        return false;
    };
    message
        .duid
        .is_none_or(|duid| is_own_duid(duid, guard.mac) || is_allowed(guard, duid))
}

fn is_allowed(guard: &Guard, id: &[u8]) -> bool {
    guard.all_client_ids || guard.client_ids.iter().any(|allowed| allowed.bytes() == id)
}

/// A DHCPv4 message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Message4<'a> {
    pub is_reply: bool,
    pub hardware_len: u8,
    pub transaction: u32,
    pub your_ip: Ipv4Addr,
    pub client_mac: MacAddr,
    /// Option 53; zero if missing.
    pub kind: u8,
    pub client_id: Option<&'a [u8]>,
    pub lease_secs: Option<u32>,
}

impl<'a> Message4<'a> {
    /// `None` if the message is cut off, contradicts itself or could hide options.
    pub fn parse(body: &'a [u8]) -> Option<Self> {
        let fixed = body.first_chunk::<FIXED4>()?;
        let options = body.get(FIXED4..)?.strip_prefix(&MAGIC)?;
        let mut message = Self {
            is_reply: fixed[0] == 2,
            hardware_len: fixed[2],
            transaction: u32::from_be_bytes(*fixed[4..].first_chunk()?),
            your_ip: Ipv4Addr::from(*fixed[16..].first_chunk::<4>()?),
            client_mac: MacAddr(*fixed[28..].first_chunk()?),
            kind: 0,
            client_id: None,
            lease_secs: None,
        };
        message.read_options(options).then_some(message)
    }

    fn read_options(&mut self, mut options: &'a [u8]) -> bool {
        loop {
            match options {
                [OPTION_PAD, rest @ ..] => options = rest,
                [] | [OPTION_END, ..] => return true,
                [kind, len, rest @ ..] if usize::from(*len) <= rest.len() => {
                    let (value, rest) = rest.split_at(usize::from(*len));
                    if !self.read_option(*kind, value) {
                        return false;
                    }
                    options = rest;
                }
                _ => return false,
            }
        }
    }

    fn read_option(&mut self, kind: u8, value: &'a [u8]) -> bool {
        match (kind, value) {
            (OPTION_OVERLOAD, _) => return false,
            (OPTION_CLIENT_ID, id) => return self.client_id.replace(id).is_none(),
            (OPTION_MESSAGE, [kind]) => self.kind = *kind,
            (OPTION_LEASE, value) => {
                self.lease_secs = value.try_into().map(u32::from_be_bytes).ok();
            }
            _ => {}
        }
        true
    }
}

/// A DHCPv6 message between client and server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Message6<'a> {
    pub kind: u8,
    pub transaction: u32,
    pub duid: Option<&'a [u8]>,
    options: &'a [u8],
}

impl<'a> Message6<'a> {
    /// `None` if the message is cut off, names two clients or is a relay's.
    pub fn parse(body: &'a [u8]) -> Option<Self> {
        let (&[kind, t0, t1, t2], options) = body.split_first_chunk()?;
        if kind >= RELAY_FORWARD {
            return None;
        }
        let mut message = Self {
            kind,
            transaction: u32::from_be_bytes([0, t0, t1, t2]),
            duid: None,
            options,
        };
        let mut is_whole = true;
        for option in Options6(options) {
            match option {
                Some((OPTION6_DUID, duid)) => is_whole &= message.duid.replace(duid).is_none(),
                Some(_) => {}
                None => is_whole = false,
            }
        }
        is_whole.then_some(message)
    }

    /// The addresses that it grants, with their lifetimes in seconds; zero takes one back.
    pub fn addresses(&self) -> impl Iterator<Item = (Ipv6Addr, u32)> + use<'a> {
        let associations = Options6(self.options).flatten();
        let inner = associations.filter_map(|(code, value)| match code {
            OPTION6_IA_NA => value.get(12..),
            OPTION6_IA_TA => value.get(4..),
            _ => None,
        });
        let options = inner.flat_map(|options| Options6(options).flatten());
        options
            .filter(|(code, _)| *code == OPTION6_ADDRESS)
            .filter_map(|(_, value)| {
                let address: &[u8; 16] = value.first_chunk()?;
                let valid = value.get(20..24)?.try_into().ok()?;
                Some((Ipv6Addr::from(*address), u32::from_be_bytes(valid)))
            })
            .take(ADDRESSES_MAX)
    }
}

/// The options of a DHCPv6 message; `None` in place of one that is cut off, then the end.
#[derive(Clone)]
struct Options6<'a>(&'a [u8]);

impl<'a> Iterator for Options6<'a> {
    type Item = Option<(u16, &'a [u8])>;

    fn next(&mut self) -> Option<Self::Item> {
        let all = core::mem::take(&mut self.0);
        if all.is_empty() {
            return None;
        }
        let Some((&[c0, c1, l0, l1], rest)) = all.split_first_chunk() else {
            return Some(None);
        };
        let Some((value, rest)) = rest.split_at_checked(usize::from(u16::from_be_bytes([l0, l1])))
        else {
            return Some(None);
        };
        self.0 = rest;
        Some(Some((u16::from_be_bytes([c0, c1]), value)))
    }
}
