//! From a received packet to its transport: addresses, extension headers, fragments.

use core::net::{IpAddr, Ipv6Addr};

use mbuf::Chain;
use wire::{
    ExtensionFault, Extensions, FRAGMENT_HEADER_BYTES, IPV6_HEADER_BYTES, Icmpv6Repr, Ipv6Fragment,
    Ipv6View, Malformed, Problem, Protocol,
};

use crate::addr::Addresses;
use crate::counters::DropReason;
use crate::counters6::Snmp6;
use crate::env::Env;
use crate::input::{HEADERS_MAX_V6, IpInfo, Quote};
use crate::reassembly::{FragmentKey, Piece};
use crate::stack::Stack;

/// Bytes of the smallest transport header whose ports and length say what it is.
const TRANSPORT_BYTES_MIN: usize = 8;
/// Where the payload's length stands in the fixed header.
const PAYLOAD_LEN_AT: u32 = 4;

/// Whether an address holds on its link only.
pub(crate) const fn is_link_local(addr: Ipv6Addr) -> bool {
    addr.segments()[0] & 0xffc0 == 0xfe80
}

/// How a packet came.
#[derive(Clone, Copy)]
struct Arrival {
    is_checked: bool,
    is_unicast_frame: bool,
    is_loopback: bool,
}

impl Stack {
    /// Takes a packet of the port that starts with its IP header.
    pub(crate) fn ipv6_input<E: Env>(
        &mut self,
        env: &mut E,
        packet: Chain,
        is_checked: bool,
        is_unicast_frame: bool,
    ) -> Result<(), DropReason> {
        let arrival = Arrival {
            is_checked,
            is_unicast_frame,
            is_loopback: false,
        };
        self.counted_input(env, packet, arrival)
    }

    /// Takes a packet to ourselves.
    pub(crate) fn ipv6_loopback<E: Env>(
        &mut self,
        env: &mut E,
        packet: Chain,
    ) -> Result<(), DropReason> {
        let arrival = Arrival {
            is_checked: true,
            is_unicast_frame: true,
            is_loopback: true,
        };
        self.counted_input(env, packet, arrival)
    }

    fn counted_input<E: Env>(
        &mut self,
        env: &mut E,
        packet: Chain,
        arrival: Arrival,
    ) -> Result<(), DropReason> {
        self.net.count6(Snmp6::InReceives);
        let result = self.packet_input(env, packet, arrival);
        if let Err(reason) = result
            && let Some(counter) = Snmp6::of_drop(reason)
        {
            self.net.count6(counter);
        }
        result
    }

    fn packet_input<E: Env>(
        &mut self,
        env: &mut E,
        mut packet: Chain,
        arrival: Arrival,
    ) -> Result<(), DropReason> {
        self.context(env).pull_up::<HEADERS_MAX_V6>(&mut packet)?;
        let bytes = packet.front().map_or(&[][..], |front| front.bytes());
        let header = Ipv6View::parse(bytes, packet.len()).map_err(|why| match why {
            Malformed::Length => DropReason::Truncated,
            why => why.into(),
        })?;
        let (src, dst) = (header.src(), header.dst());
        let is_unicast = self.check_addresses_v6(src, dst, arrival)?;
        let total = IPV6_HEADER_BYTES + usize::from(header.payload_len());
        let (first, hop_limit) = (header.next_header(), header.hop_limit());
        let tos = header.traffic_class();
        let behind = &bytes[IPV6_HEADER_BYTES..bytes.len().min(total)];
        let addresses = Addresses::V6 { src, dst };
        let chain = Extensions::parse(behind, first);
        packet.truncate(total);
        let chain = match chain {
            Ok(chain) => chain,
            Err(fault) => {
                let mut cx = self.context(env);
                cx.send_extension_fault(addresses, fault, &packet);
                return Err(drop_of(fault));
            }
        };
        let info = IpInfo {
            addresses,
            is_unicast: is_unicast && arrival.is_unicast_frame,
            tos,
            is_checked: arrival.is_checked,
            hop_limit,
            was_cut: chain.fragment.is_some(),
            has_router_alert: chain.has_router_alert,
            protocol_at: 6,
        };
        let headers_len = IPV6_HEADER_BYTES + chain.len;
        if let Some(piece) = chain.fragment.filter(|piece| !piece.is_atomic()) {
            let quote = Quote::of(&packet, headers_len);
            packet.advance(headers_len);
            return self.fragment_input(env, info, piece, &quote, packet);
        }
        let protocol = Protocol::from_number(chain.upper);
        let quote = match protocol {
            Protocol::Tcp if !self.net.keeps_headers => Quote::None,
            _ => Quote::of(&packet, headers_len),
        };
        let protocol_at = protocol_place(quote.bytes(), first);
        packet.advance(headers_len);
        let info = IpInfo {
            protocol_at,
            ..info
        };
        self.deliver(env, &info, protocol, packet, &quote)
    }

    /// Takes a piece of a packet (RFC 8200 4.5).
    fn fragment_input<E: Env>(
        &mut self,
        env: &mut E,
        info: IpInfo,
        fragment: Ipv6Fragment,
        quote: &Quote,
        payload: Chain,
    ) -> Result<(), DropReason> {
        self.net.count6(Snmp6::ReasmReqds);
        if fragment.offset == 0 && !has_all_headers(fragment.next_header, &payload) {
            return Err(DropReason::FragmentMalformed);
        }
        let is_uneven = fragment.has_more && !payload.len().is_multiple_of(8);
        let is_long = usize::from(fragment.offset) + payload.len() > usize::from(u16::MAX);
        if (is_uneven || is_long) && info.is_unicast {
            let offset_at = quote.bytes().len() - FRAGMENT_HEADER_BYTES + 2;
            let pointer = if is_uneven {
                PAYLOAD_LEN_AT
            } else {
                offset_at as u32
            };
            let problem = Problem::Field;
            let message = Icmpv6Repr::ParameterProblem { problem, pointer };
            self.context(env)
                .send_icmpv6_error(info.addresses, message, quote.bytes(), &payload);
        }
        let piece = Piece {
            key: FragmentKey {
                addresses: info.addresses,
                protocol: 0,
                ident: fragment.ident,
            },
            offset: usize::from(fragment.offset),
            is_last: !fragment.has_more,
            headers: quote.bytes(),
            payload,
        };
        let Some((quote, mut whole)) = self.reassemble(env, piece)? else {
            return Ok(());
        };
        self.net.count6(Snmp6::ReasmOks);
        self.context(env).pull_up::<HEADERS_MAX_V6>(&mut whole)?;
        let bytes = whole.front().map_or(&[][..], |front| front.bytes());
        // The first piece's fragment header says what the whole begins with.
        let fragment_at = quote.bytes().len().saturating_sub(FRAGMENT_HEADER_BYTES);
        let first = quote.bytes().get(fragment_at).copied().unwrap_or(0);
        let chain = Extensions::parse(bytes, first).map_err(drop_of)?;
        if chain.fragment.is_some() {
            return Err(DropReason::BadExtension);
        }
        whole.advance(chain.len);
        let info = IpInfo {
            is_checked: false,
            protocol_at: fragment_at as u32,
            ..info
        };
        self.deliver(
            env,
            &info,
            Protocol::from_number(chain.upper),
            whole,
            &quote,
        )
    }

    /// Whether a packet may come from `src` and is for us; says whether for us alone.
    fn check_addresses_v6(
        &mut self,
        src: Ipv6Addr,
        dst: Ipv6Addr,
        arrival: Arrival,
    ) -> Result<bool, DropReason> {
        if src.is_multicast() || dst.is_unspecified() {
            return Err(DropReason::BadSource);
        }
        let is_own = self.net.is_local(IpAddr::V6(dst));
        if dst.is_multicast() {
            self.net.count6(Snmp6::InMcastPkts);
        }
        if arrival.is_loopback {
            return Ok(is_own);
        }
        let v6 = self.net.v6.as_ref().ok_or(DropReason::Ipv6Off)?;
        if v6.is_off {
            return Err(DropReason::Ipv6Off);
        }
        // RFC 4291 2.5.3 and RFC 4038 4.2: such packets come from nowhere.
        let is_impossible = |addr: Ipv6Addr| addr.is_loopback() || addr.to_ipv4_mapped().is_some();
        if is_impossible(src) || is_impossible(dst) || v6.owns(src) {
            return Err(DropReason::BadSource);
        }
        if is_own {
            return Ok(true);
        }
        if !dst.is_multicast() {
            return Err(DropReason::WrongAddress);
        }
        // RFC 4291 2.7: groups of the own interface do not come from outside.
        let is_of_interface = dst.octets()[1] & 0xf < 2;
        let is_member = self.net.groups.contains(IpAddr::V6(dst)) || v6.follows_group(dst);
        if is_of_interface || !is_member {
            return Err(DropReason::NotMember);
        }
        Ok(false)
    }
}

fn drop_of(fault: ExtensionFault) -> DropReason {
    match fault {
        ExtensionFault::Truncated => DropReason::Truncated,
        _ => DropReason::BadExtension,
    }
}

/// RFC 7112: the first piece has all headers, so that who filters sees them.
fn has_all_headers(first: u8, payload: &Chain) -> bool {
    let mut bytes = [0; HEADERS_MAX_V6];
    let len = payload.copy_to_slice(0, &mut bytes);
    Extensions::parse(&bytes[..len], first)
        .is_ok_and(|chain| len >= chain.len + TRANSPORT_BYTES_MIN)
}

/// Where the upper layer's number stands in headers that were walked: in the last one's
/// first byte, or in the fixed header if there is no other.
fn protocol_place(headers: &[u8], first: u8) -> u32 {
    let mut at = IPV6_HEADER_BYTES;
    let (mut place, mut kind) = (6, first);
    while let Some(header) = headers.get(at..at + 2) {
        place = at as u32;
        at += match kind {
            wire::next_header::FRAGMENT => FRAGMENT_HEADER_BYTES,
            _ => (usize::from(header[1]) + 1) * 8,
        };
        kind = header[0];
    }
    place
}
