//! From a received frame to a transport: Ethernet, IPv4, and what both families share.

pub(crate) mod prediction;

use core::net::IpAddr;

use mbuf::{Chain, Checksum, RxFrame};
use wire::{
    ETHERNET_HEADER_BYTES, EXTENSION_BYTES_MAX, EtherType, EthernetRepr, IPV4_HEADER_BYTES,
    IPV6_HEADER_BYTES, IcmpRepr, Icmpv6Repr, Ipv4View, Malformed, Protocol, Sum,
    TCP_HEADER_BYTES_MAX, next_header,
};

use crate::addr::Addresses;
use crate::context::Context;
use crate::counters::{Count, DropReason};
use crate::counters6::Snmp6;
use crate::env::{Env, RawPacket};
use crate::reassembly::{Expired, FragmentKey, Piece, Refused};
use crate::stack::Stack;
use prediction::headers_of;

/// Longest headers of an IPv4 packet: the part that must lie in one buffer.
const HEADERS_MAX_V4: usize = 60 + TCP_HEADER_BYTES_MAX;
/// The same of an IPv6 packet.
pub(crate) const HEADERS_MAX_V6: usize =
    IPV6_HEADER_BYTES + EXTENSION_BYTES_MAX + TCP_HEADER_BYTES_MAX;

/// The ECN field of the type of service; all ones: congestion experienced.
pub(crate) const ECN_BITS: u8 = 3;

/// Whether a type of service says that a router on the way was congested (RFC 3168).
#[inline]
pub(crate) fn is_marked(tos: u8) -> bool {
    tos & ECN_BITS == ECN_BITS
}

/// What a transport needs to know of the IP packet that it came in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IpInfo {
    pub addresses: Addresses,
    /// Whether the destination names one host, us.
    pub is_unicast: bool,
    /// Whether the transport's checksum needs no look.
    pub is_checked: bool,
    /// Hops that were left.
    pub hop_limit: u8,
    /// Differentiated services and ECN.
    pub tos: u8,
    /// Whether it was a fragment, or could have been.
    pub was_cut: bool,
    /// Whether a router along the way was asked to look.
    pub has_router_alert: bool,
    /// Where the protocol's number stood, from the IP header's first byte.
    pub protocol_at: u32,
}

impl IpInfo {
    pub fn src(&self) -> IpAddr {
        self.addresses.src()
    }

    pub fn dst(&self) -> IpAddr {
        self.addresses.dst()
    }

    /// Whether a router on the way was congested.
    pub fn is_marked(&self) -> bool {
        is_marked(self.tos)
    }

    /// Whether the transport's checksum is right.
    pub fn verify(&self, protocol: Protocol, packet: &Chain) -> bool {
        self.is_checked || {
            let pseudo = self.addresses.pseudo(protocol, packet.len() as u32);
            packet.slices().fold(pseudo, Sum::bytes).is_valid()
        }
    }
}

/// Where a fragment belongs.
struct FragmentPlace {
    ident: u32,
    offset: usize,
    is_last: bool,
}

/// Longest headers that an error quotes.
const QUOTE_BYTES_MAX: usize = IPV6_HEADER_BYTES + EXTENSION_BYTES_MAX;

/// A copy of a packet's headers, for an error that quotes them.
#[expect(
    clippy::large_enum_variant,
    reason = "one at a time lives on the stack and is not moved"
)]
pub(crate) enum Quote {
    /// Nobody will ask.
    None,
    /// An IPv4 header without options, as nearly all are: few bytes to keep for each packet.
    Plain([u8; IPV4_HEADER_BYTES]),
    /// Other headers.
    Long {
        bytes: [u8; QUOTE_BYTES_MAX],
        len: usize,
    },
}

impl Quote {
    /// Of `packet`'s first `len` bytes, as far as headers reach.
    #[inline]
    pub fn of(packet: &Chain, len: usize) -> Self {
        let bytes = packet.front().map_or(&[][..], |front| front.bytes());
        match bytes.first_chunk() {
            Some(plain) if len == plain.len() => Self::Plain(*plain),
            _ => Self::long(|to| packet.copy_to_slice(0, &mut to[..len.min(QUOTE_BYTES_MAX)])),
        }
    }

    /// Of headers alone, as far as there is room.
    fn of_bytes(headers: &[u8]) -> Self {
        Self::long(|to| {
            let len = headers.len().min(to.len());
            to[..len].copy_from_slice(&headers[..len]);
            len
        })
    }

    /// What `fill` writes; it says how much that is.
    fn long(fill: impl FnOnce(&mut [u8]) -> usize) -> Self {
        let mut bytes = [0; QUOTE_BYTES_MAX];
        let len = fill(&mut bytes);
        Self::Long { bytes, len }
    }

    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::None => &[],
            Self::Plain(bytes) => bytes,
            Self::Long { bytes, len } => &bytes[..*len],
        }
    }
}

/// Why the sender of a packet is told that it was not delivered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Refusal {
    Port,
    Protocol,
}

impl From<Malformed> for DropReason {
    fn from(why: Malformed) -> Self {
        match why {
            Malformed::Checksum => Self::BadChecksum,
            _ => Self::Malformed,
        }
    }
}

impl From<Refused> for DropReason {
    fn from(why: Refused) -> Self {
        match why {
            Refused::TooLong | Refused::Uneven => Self::FragmentMalformed,
            Refused::Overlap => Self::FragmentOverlap,
            Refused::Limit => Self::ReassemblyLimit,
        }
    }
}

impl Stack {
    /// Takes a frame of a batch from the port. Ends with [`flush`](Self::flush).
    #[inline]
    pub fn receive<E: Env>(&mut self, env: &mut E, frame: RxFrame) {
        self.net.look_at_supply(env);
        self.net.count(Count::FramesIn);
        self.net.count_bytes(Count::BytesIn, &frame.chain);
        if let Err(reason) = self.ethernet_input(env, frame) {
            self.net.drop(reason);
        }
    }

    #[inline]
    fn ethernet_input<E: Env>(&mut self, env: &mut E, frame: RxFrame) -> Result<(), DropReason> {
        let RxFrame {
            mut chain,
            checksum,
            tag,
            ..
        } = frame;
        // It is of another network, as one with its tag in the bytes would be.
        if tag.is_some() {
            return Err(DropReason::UnknownProtocol);
        }
        let is_checked = checksum != Checksum::Unknown;
        if let Some(done) = self.predicted_input(env, &mut chain, is_checked) {
            return done;
        }
        let header = EthernetRepr::parse(chain.front().map_or(&[], |front| front.bytes()))?;
        let port = self.net.port.ok_or(DropReason::NotForUs)?;
        if header.dst != port.mac && !header.dst.is_multicast() {
            return Err(DropReason::NotForUs);
        }
        let flow = headers_of(&chain).copied();
        chain.advance(ETHERNET_HEADER_BYTES);
        let is_unicast = !header.dst.is_multicast();
        match header.ether_type {
            EtherType::Ipv4 => {
                self.ipv4_input(env, chain, is_checked, is_unicast)?;
                if let Some(headers) = flow {
                    self.net.learn(&headers);
                }
                Ok(())
            }
            EtherType::Ipv6 => self.ipv6_input(env, chain, is_checked, is_unicast),
            EtherType::Arp => self.arp_input(env, &chain),
            EtherType::Other(_) => Err(DropReason::UnknownProtocol),
        }
    }

    /// Takes a packet to ourselves.
    pub(crate) fn loopback_input<E: Env>(
        &mut self,
        env: &mut E,
        packet: Chain,
    ) -> Result<(), DropReason> {
        let first = packet.front().and_then(|front| front.bytes().first());
        match first.map(|byte| byte >> 4) {
            Some(6) => self.ipv6_loopback(env, packet),
            _ => self.ipv4_input(env, packet, true, true),
        }
    }

    /// Takes a packet that starts with its IP header.
    #[inline]
    fn ipv4_input<E: Env>(
        &mut self,
        env: &mut E,
        mut packet: Chain,
        is_checked: bool,
        is_unicast_frame: bool,
    ) -> Result<(), DropReason> {
        self.context(env).pull_up::<HEADERS_MAX_V4>(&mut packet)?;
        let bytes = packet.front().map_or(&[][..], |front| front.bytes());
        let header = Ipv4View::parse(bytes, packet.len())?;
        let (src, dst) = (header.src(), header.dst());
        let addresses = Addresses::V4 { src, dst };
        let is_unicast = self.check_addresses_v4(&header)? && is_unicast_frame;
        let (total, header_len) = (header.total_len(), header.header().len());
        let protocol = header.protocol();
        let info = IpInfo {
            addresses,
            is_unicast,
            is_checked,
            hop_limit: header.ttl(),
            tos: header.tos(),
            was_cut: header.is_fragment(),
            has_router_alert: header_len > IPV4_HEADER_BYTES,
            protocol_at: 9,
        };
        let fragment = header.is_fragment().then(|| FragmentPlace {
            ident: u32::from(header.ident()),
            offset: header.fragment_offset(),
            is_last: !header.more_fragments(),
        });
        packet.truncate(total);
        if protocol == Protocol::Tcp && fragment.is_none() && !self.net.keeps_headers {
            packet.advance(header_len);
            return self.tcp_input(env, &info, &[], packet);
        }
        // An ICMP error quotes the header, and filters see it: it is kept until the transport
        // has decided.
        let quote = Quote::of(&packet, header_len);
        packet.advance(header_len);
        match fragment {
            Some(place) => self.fragment_input_v4(env, info, protocol, place, &quote, packet),
            None => self.deliver(env, &info, protocol, packet, &quote),
        }
    }

    #[cold]
    fn fragment_input_v4<E: Env>(
        &mut self,
        env: &mut E,
        mut info: IpInfo,
        protocol: Protocol,
        place: FragmentPlace,
        quote: &Quote,
        packet: Chain,
    ) -> Result<(), DropReason> {
        let piece = Piece {
            key: FragmentKey {
                addresses: info.addresses,
                protocol: protocol.number(),
                ident: place.ident,
            },
            offset: place.offset,
            is_last: place.is_last,
            headers: quote.bytes(),
            payload: packet,
        };
        let Some((first, mut whole)) = self.reassemble(env, piece)? else {
            return Ok(());
        };
        info.is_checked = false;
        self.context(env).pull_up::<HEADERS_MAX_V4>(&mut whole)?;
        self.deliver(env, &info, protocol, whole, &first)
    }

    /// Adds a piece; returns the whole payload and the first piece's headers when the last
    /// one missing has come.
    pub(crate) fn reassemble<E: Env>(
        &mut self,
        env: &mut E,
        piece: Piece<'_>,
    ) -> Result<Option<(Quote, Chain)>, DropReason> {
        self.net.count(Count::FragmentsIn);
        if self.net.is_scarce {
            return Err(DropReason::MemoryScarce);
        }
        self.net.change_upkeep();
        let evicted = self.net.reassembly.evicted;
        let added = self.net.reassembly.add(piece, env.now());
        let evicted = self.net.reassembly.evicted - evicted;
        let drops = &mut self.net.stats.drops;
        drops.add(DropReason::ReassemblyLimit, evicted);
        let Some((headers, whole)) = added? else {
            return Ok(None);
        };
        self.net.count(Count::Reassembled);
        Ok(Some((Quote::of_bytes(&headers), whole)))
    }

    /// Gives up packets whose rest did not come, and tells who sent them.
    pub(crate) fn expire_reassembly<E: Env>(&mut self, env: &mut E) {
        while let Some(Expired { addresses, first }) = self.net.reassembly.pop_expired(env.now()) {
            self.net.drop(DropReason::ReassemblyTimeout);
            let is_v6 = matches!(addresses, Addresses::V6 { .. });
            if is_v6 {
                self.net.count6(Snmp6::ReasmTimeout);
                self.net.count6(Snmp6::ReasmFails);
            }
            let Some((headers, payload)) = first.filter(|_| self.net.is_local(addresses.dst()))
            else {
                continue;
            };
            let mut cx = self.context(env);
            if is_v6 {
                let message = Icmpv6Repr::ReassemblyTimeExceeded;
                cx.send_icmpv6_error(addresses, message, &headers, &payload);
            } else {
                let message = IcmpRepr::ReassemblyTimeExceeded;
                cx.send_icmp_error(addresses, message, &headers, &payload);
            }
        }
    }

    /// Hands a packet without its IP header to its transport.
    pub(crate) fn deliver<E: Env>(
        &mut self,
        env: &mut E,
        info: &IpInfo,
        protocol: Protocol,
        mut packet: Chain,
        quote: &Quote,
    ) -> Result<(), DropReason> {
        let is_v6 = matches!(info.addresses, Addresses::V6 { .. });
        if is_v6 {
            self.net.count6(Snmp6::InDelivers);
        }
        let is_taken = match protocol {
            Protocol::Tcp | Protocol::Udp if !self.net.keeps_headers => false,
            _ => offer_raw(env, info, protocol, quote, &packet),
        };
        let refusal = match protocol {
            Protocol::Tcp => return self.tcp_input(env, info, quote.bytes(), packet),
            Protocol::Icmp if !is_v6 => return self.icmp_input(env, info, packet),
            Protocol::Igmp if !is_v6 => return self.igmp_input(env, info, &packet),
            Protocol::Udp => match self.udp_input(env, info, quote.bytes(), &mut packet) {
                Err(DropReason::NoSocket) => Refusal::Port,
                done => return done,
            },
            Protocol::Other(next_header::ICMPV6) if is_v6 => {
                return self.icmpv6_input(env, info, packet);
            }
            // RFC 8200 4.7: it says that nothing follows, and nobody is asked.
            Protocol::Other(next_header::NONE) if is_v6 => {
                return Err(DropReason::UnknownProtocol);
            }
            _ if is_taken => return Ok(()),
            _ => Refusal::Protocol,
        };
        if info.is_unicast {
            self.context(env)
                .send_refusal(info, refusal, quote.bytes(), &packet);
        }
        Err(match refusal {
            Refusal::Protocol => DropReason::UnknownProtocol,
            Refusal::Port => DropReason::NoSocket,
        })
    }

    /// Whether a packet may come from its source and is for us; says whether for us alone.
    fn check_addresses_v4(&self, header: &Ipv4View<'_>) -> Result<bool, DropReason> {
        let (src, dst) = (header.src(), header.dst());
        if src.is_multicast() || src.is_broadcast() || self.net.is_broadcast(src) {
            return Err(DropReason::BadSource);
        }
        if self.net.is_local_v4(dst) {
            return Ok(true);
        }
        // Without an address of our own only the DHCP client receives, whatever is named.
        if self.net.is_broadcast(dst) || self.net.address.is_none() {
            return Ok(false);
        }
        if !dst.is_multicast() {
            return Err(DropReason::WrongAddress);
        }
        if self.net.groups.contains(IpAddr::V4(dst)) {
            return Ok(false);
        }
        Err(DropReason::NotMember)
    }
}

/// Lets raw sockets have a packet. Says whether one took it.
fn offer_raw<E: Env>(
    env: &mut E,
    info: &IpInfo,
    protocol: Protocol,
    quote: &Quote,
    packet: &Chain,
) -> bool {
    env.raw(&RawPacket {
        src: info.src(),
        dst: info.dst(),
        protocol: protocol.number(),
        header: quote.bytes(),
        payload: packet,
    })
}

impl<E: Env> Context<'_, E> {
    /// Sees to it that a packet's first `MAX` bytes, all its headers, lie in one part.
    #[inline]
    pub fn pull_up<const MAX: usize>(&mut self, packet: &mut Chain) -> Result<(), DropReason> {
        let wanted = packet.len().min(MAX);
        if packet.front().is_none_or(|front| front.len() >= wanted) {
            return Ok(());
        }
        self.pull_up_parts::<MAX>(packet)
    }

    #[cold]
    fn pull_up_parts<const MAX: usize>(&mut self, packet: &mut Chain) -> Result<(), DropReason> {
        let mut bytes = [0; MAX];
        let len = packet.copy_to_slice(0, &mut bytes);
        let mut buffer = self.env.alloc().ok_or(DropReason::NoBuffer)?;
        buffer.append(&bytes[..len]);
        packet.advance(len);
        packet.push_front(buffer);
        Ok(())
    }
}
