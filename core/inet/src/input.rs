//! From a received frame to a transport: Ethernet, ARP and IPv4.

use core::net::Ipv4Addr;

use mbuf::{Chain, Checksum, RxFrame};
use wire::{
    ArpOperation, ArpRepr, ETHERNET_HEADER_BYTES, EtherType, EthernetRepr, Ipv4View, Malformed,
    Protocol, Sum, TCP_HEADER_BYTES_MAX, Unreachable,
};

use crate::context::Context;
use crate::counters::{Count, DropReason};
use crate::env::{Env, RawPacket};
use crate::reassembly::FragmentKey;
use crate::stack::Stack;

/// Longest headers of a packet, from IP on: the part that must lie in one buffer.
const HEADERS_MAX: usize = 60 + TCP_HEADER_BYTES_MAX;

/// The ECN field of the type of service; all ones: congestion experienced.
const ECN_BITS: u8 = 3;

/// What a transport needs to know of the IP packet that it came in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IpInfo {
    pub src: Ipv4Addr,
    pub dst: Ipv4Addr,
    /// Whether the destination names one host, us.
    pub is_unicast: bool,
    /// Whether a router on the way was congested (RFC 3168).
    pub is_marked: bool,
    /// Whether the transport's checksum needs no look.
    pub is_checked: bool,
}

impl IpInfo {
    /// Whether the transport's checksum is right.
    pub fn verify(&self, protocol: Protocol, packet: &Chain) -> bool {
        self.is_checked || {
            let pseudo = Sum::pseudo_v4(self.src, self.dst, protocol, packet.len() as u32);
            packet.slices().fold(pseudo, Sum::bytes).is_valid()
        }
    }
}

impl From<Malformed> for DropReason {
    fn from(why: Malformed) -> Self {
        match why {
            Malformed::Checksum => Self::BadChecksum,
            _ => Self::Malformed,
        }
    }
}

impl Stack {
    /// Takes a frame from the port.
    pub(crate) fn ethernet_input<E: Env>(&mut self, env: &mut E, frame: RxFrame) {
        self.net.count(Count::FramesIn);
        self.net.count_bytes(Count::BytesIn, &frame.chain);
        if let Err(reason) = self.try_ethernet_input(env, frame) {
            self.net.drop(reason);
        }
    }

    fn try_ethernet_input<E: Env>(
        &mut self,
        env: &mut E,
        frame: RxFrame,
    ) -> Result<(), DropReason> {
        let RxFrame {
            mut chain,
            checksum,
            ..
        } = frame;
        let header = EthernetRepr::parse(chain.front().map_or(&[], |front| front.bytes()))?;
        let port = self.net.port.ok_or(DropReason::NotForUs)?;
        if header.dst != port.mac && !header.dst.is_multicast() {
            return Err(DropReason::NotForUs);
        }
        chain.advance(ETHERNET_HEADER_BYTES);
        match header.ether_type {
            EtherType::Ipv4 => {
                let is_checked = checksum != Checksum::Unknown;
                self.ipv4_input(env, chain, is_checked, !header.dst.is_multicast())
            }
            EtherType::Arp => self.arp_input(env, &chain),
            EtherType::Ipv6 | EtherType::Other(_) => Err(DropReason::UnknownProtocol),
        }
    }

    fn arp_input<E: Env>(&mut self, env: &mut E, packet: &Chain) -> Result<(), DropReason> {
        let mut bytes = [0; ArpRepr::BYTES];
        let len = packet.copy_to_slice(0, &mut bytes);
        let arp = ArpRepr::parse(&bytes[..len])?;
        self.net.count(Count::ArpIn);
        let own = self.net.address.ok_or(DropReason::WrongAddress)?.addr();
        if !arp.sender_mac.is_station() || arp.sender_ip == own {
            return Err(DropReason::BadSource);
        }
        let is_for_us = arp.target_ip == own;
        let mut cx = self.context(env);
        let is_host = !arp.sender_ip.is_unspecified() && !arp.sender_ip.is_multicast();
        if is_host {
            let (waiting, is_changed) =
                cx.net
                    .neighbors
                    .learn(arp.sender_ip, arp.sender_mac, is_for_us, cx.now);
            if is_changed {
                cx.net.route_epoch = cx.net.route_epoch.wrapping_add(1);
            }
            cx.send_waiting(waiting, arp.sender_mac);
        }
        if is_for_us && arp.operation == ArpOperation::Request {
            cx.send_arp(ArpOperation::Reply, arp.sender_mac, arp.sender_ip);
        }
        Ok(())
    }

    /// Takes a packet that starts with its IP header.
    pub(crate) fn ipv4_input<E: Env>(
        &mut self,
        env: &mut E,
        mut packet: Chain,
        is_checked: bool,
        is_unicast_frame: bool,
    ) -> Result<(), DropReason> {
        self.context(env).pull_up(&mut packet)?;
        let bytes = packet.front().map_or(&[][..], |front| front.bytes());
        let header = Ipv4View::parse(bytes, packet.len())?;
        let (src, dst) = (header.src(), header.dst());
        let is_unicast = self.check_addresses(src, dst)? && is_unicast_frame;
        let (total, header_len) = (header.total_len(), header.header().len());
        let protocol = header.protocol();
        let is_marked = header.tos() & ECN_BITS == ECN_BITS;
        let fragment = header.is_fragment().then(|| {
            let key = FragmentKey {
                src,
                dst,
                protocol: protocol.number(),
                ident: header.ident(),
            };
            (key, header.fragment_offset(), !header.more_fragments())
        });
        // An ICMP error quotes the header, so it is kept until the transport has decided.
        let mut quote = [0; QUOTE_BYTES];
        let quoted = match protocol {
            Protocol::Tcp => 0,
            _ => packet.copy_to_slice(0, &mut quote),
        };
        packet.truncate(total);
        packet.advance(header_len);
        let mut info = IpInfo {
            src,
            dst,
            is_unicast,
            is_marked,
            is_checked,
        };
        if let Some((key, offset, is_last)) = fragment {
            let now = env.now();
            let whole = self.net.reassembly.add(key, offset, is_last, packet, now);
            let Some(whole) = whole.map_err(|_| DropReason::ReassemblyLimit)? else {
                return Ok(());
            };
            packet = whole;
            info.is_checked = false;
            self.context(env).pull_up(&mut packet)?;
        }
        let unreachable = match protocol {
            Protocol::Tcp => return self.tcp_input(env, &info, packet),
            Protocol::Udp => match self.udp_input(env, &info, packet) {
                Err(DropReason::NoSocket) => Unreachable::Port,
                done => return done,
            },
            Protocol::Icmp | Protocol::Igmp | Protocol::Other(_) => {
                let is_taken = env.raw(&RawPacket {
                    src,
                    dst,
                    protocol: protocol.number(),
                    header: &quote[..header_len.min(quoted)],
                    payload: &packet,
                });
                match protocol {
                    Protocol::Icmp => return self.icmp_input(env, &info, packet),
                    _ if is_taken => return Ok(()),
                    _ => Unreachable::Protocol,
                }
            }
        };
        if is_unicast {
            self.context(env)
                .send_unreachable(dst, src, unreachable, &quote[..quoted]);
        }
        Err(match unreachable {
            Unreachable::Protocol => DropReason::UnknownProtocol,
            _ => DropReason::NoSocket,
        })
    }

    /// Whether a packet may come from `src` and is for us; says whether for us alone.
    fn check_addresses(&self, src: Ipv4Addr, dst: Ipv4Addr) -> Result<bool, DropReason> {
        if src.is_multicast() || src.is_broadcast() || self.net.is_broadcast(src) {
            return Err(DropReason::BadSource);
        }
        if self.net.is_local(dst) {
            return Ok(true);
        }
        // Without an address of our own only the DHCP client receives, whatever is named.
        if self.net.is_broadcast(dst) || dst.is_multicast() || self.net.address.is_none() {
            return Ok(false);
        }
        Err(DropReason::WrongAddress)
    }
}

/// RFC 1122: the IP header and at least 8 bytes; more help nobody that we know.
const QUOTE_BYTES: usize = 60 + 8;

impl<E: Env> Context<'_, E> {
    /// Sees to it that all headers lie in the packet's first part.
    #[inline]
    fn pull_up(&mut self, packet: &mut Chain) -> Result<(), DropReason> {
        let wanted = packet.len().min(HEADERS_MAX);
        if packet.front().is_none_or(|front| front.len() >= wanted) {
            return Ok(());
        }
        let mut bytes = [0; HEADERS_MAX];
        let len = packet.copy_to_slice(0, &mut bytes);
        let mut buffer = self.env.alloc().ok_or(DropReason::NoBuffer)?;
        buffer.append(&bytes[..len]);
        packet.advance(len);
        packet.push_front(buffer);
        Ok(())
    }
}
