//! Messages by which neighbours find each other: which of them a filter's queue gets a copy of.
//!
//! It is to find its peers and to be found, without listening to the rest of the link: it hears what is said to
//! one of its addresses or asked about one, what a peer announces of itself, and (IPv6) routers.

use core::net::{IpAddr, Ipv6Addr};

use wire::{ArpRepr, EtherType};

use super::Predicate;
use crate::headers::{Header, ICMP6, Packet, Piece, number_of};

const ROUTER_ADVERT: u8 = 134;
const NEIGHBOR_SOLICIT: u8 = 135;
const NEIGHBOR_ADVERT: u8 = 136;
/// Where the target stands in solicitations and advertisements of neighbours.
const TARGET_AT: usize = 8;

/// A message of ARP or of neighbour discovery.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Message {
    /// Who is told, or asked for.
    target: IpAddr,
    /// Of whom all are told.
    announced: Option<IpAddr>,
    is_from_router: bool,
}

impl Message {
    /// In the first bytes of a frame, whose packet this is; `None` if it is none.
    pub fn parse(header: &Header, packet: Option<&Packet>, frame: &[u8]) -> Option<Self> {
        if header.ether_type == number_of(EtherType::Arp) {
            return Self::arp(frame.get(header.packet_at()..)?);
        }
        let packet = packet.filter(|it| it.protocol == ICMP6 && it.piece == Piece::Whole)?;
        let body = frame.get(packet.transport_at..)?;
        let target = || {
            let bytes: &[u8; 16] = body.get(TARGET_AT..)?.first_chunk()?;
            Some(IpAddr::V6(Ipv6Addr::from(*bytes)))
        };
        let plain = Self {
            target: packet.dst,
            announced: None,
            is_from_router: false,
        };
        match *body.first()? {
            NEIGHBOR_SOLICIT => Some(Self {
                target: target()?,
                ..plain
            }),
            NEIGHBOR_ADVERT => Some(Self {
                announced: Some(target()?).filter(|_| packet.dst.is_multicast()),
                ..plain
            }),
            ROUTER_ADVERT => Some(Self {
                is_from_router: true,
                ..plain
            }),
            _ => None,
        }
    }

    /// Whether only a router says so.
    pub fn is_from_router(&self) -> bool {
        self.is_from_router
    }

    fn arp(packet: &[u8]) -> Option<Self> {
        let message = ArpRepr::parse(packet).ok()?;
        // Who tells its own (RFC 5227 1.1).
        let announces = message.sender_ip == message.target_ip;
        Some(Self {
            target: message.target_ip.into(),
            announced: announces.then(|| message.sender_ip.into()),
            is_from_router: false,
        })
    }
}

impl Predicate {
    /// Whether its queue gets a copy of the message.
    pub(crate) fn hears(&self, message: &Message) -> bool {
        self.local().contains(message.target)
            || message.announced.is_some_and(|peer| self.is_peer(peer))
            || message.is_from_router && self.local().addr().is_ipv6()
    }
}
