//! What a frame says of itself: the Ethernet header with its tag, and the packet behind.
//!
//! Frames come from a wire or a program, so every length is checked; a packet whose
//! headers are not whole within [`WINDOW_BYTES`] is no packet, and whoever protects an
//! address lets none of those pass.

use core::net::IpAddr;

use mbuf::Chain;
use wire::{EtherType, EthernetRepr, Ipv4View, Ipv6View, MacAddr};

use crate::vlan::{TAG_BYTES, TAG_TYPE, Tag};

/// Headers are looked for in this many bytes.
pub(crate) const WINDOW_BYTES: usize = 256;
/// IPv6 extension headers that we walk before giving up.
const EXTENSIONS_MAX: usize = 8;

pub(crate) const ICMP: u8 = 1;
pub(crate) const TCP: u8 = 6;
pub(crate) const UDP: u8 = 17;
pub(crate) const ICMP6: u8 = 58;
pub(crate) const SCTP: u8 = 132;

const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
const DESTINATION: u8 = 60;

/// Shows `look` the first bytes of a frame in one piece: all of it, or at least
/// [`WINDOW_BYTES`].
pub(crate) fn with_window<R>(frame: &Chain, look: impl FnOnce(&[u8]) -> R) -> R {
    match frame.front() {
        Some(first) if first.len() >= WINDOW_BYTES.min(frame.len()) => look(first.bytes()),
        _ => {
            let mut bytes = [0; WINDOW_BYTES];
            let len = frame.copy_to_slice(0, &mut bytes);
            look(&bytes[..len])
        }
    }
}

/// An Ethernet header and the tag behind it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// Receiver.
    pub dst: MacAddr,
    /// Sender.
    pub src: MacAddr,
    /// The VLAN.
    pub tag: Tag,
    /// Whether there is a tag in the bytes, even one with a priority only.
    pub is_tagged: bool,
    /// What follows, behind the tag.
    pub ether_type: u16,
}

impl Header {
    /// Reads the header of a frame; `None` if it is cut off.
    pub fn parse(frame: &[u8]) -> Option<Self> {
        let header = EthernetRepr::parse(frame).ok()?;
        let outer = number_of(header.ether_type);
        let plain = Self {
            dst: header.dst,
            src: header.src,
            tag: Tag::Untagged,
            is_tagged: false,
            ether_type: outer,
        };
        if outer != TAG_TYPE {
            return Some(plain);
        }
        let &[c0, c1, t0, t1] = frame.get(wire::ETHERNET_HEADER_BYTES..)?.first_chunk()?;
        Some(Self {
            tag: Tag::from_control(u16::from_be_bytes([c0, c1])),
            is_tagged: true,
            ether_type: u16::from_be_bytes([t0, t1]),
            ..plain
        })
    }

    /// Of a frame in pieces.
    pub fn of(frame: &Chain) -> Option<Self> {
        match frame.front() {
            Some(first) if first.len() >= 18 => Self::parse(first.bytes()),
            _ => {
                let mut bytes = [0; 18];
                let len = frame.copy_to_slice(0, &mut bytes);
                Self::parse(&bytes[..len])
            }
        }
    }

    /// Of a frame whose tag, if it has one, is beside its bytes. A tag in the bytes is an inner one
    /// then, which nobody here looks behind.
    pub fn beside(frame: &Chain, tag: Option<u16>) -> Option<Self> {
        let header = Self::of(frame)?;
        let Some(tag) = tag else {
            return Some(header);
        };
        Some(Self {
            tag: Tag::from_control(tag),
            is_tagged: false,
            ether_type: match header.is_tagged {
                true => TAG_TYPE,
                false => header.ether_type,
            },
            ..header
        })
    }

    /// Where the packet begins.
    pub fn packet_at(&self) -> usize {
        let tag = if self.is_tagged { TAG_BYTES } else { 0 };
        wire::ETHERNET_HEADER_BYTES + tag
    }
}

/// The assigned number.
pub(crate) const fn number_of(ether_type: EtherType) -> u16 {
    match ether_type {
        EtherType::Ipv4 => 0x0800,
        EtherType::Arp => 0x0806,
        EtherType::Ipv6 => 0x86dd,
        EtherType::Other(number) => number,
    }
}

/// Which part of a packet a frame carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Piece {
    /// All of it.
    Whole,
    /// The first fragment, with the transport header.
    First,
    /// A fragment without a transport header.
    Later,
}

/// An IP packet as far as steering, flows and protection look at it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet {
    /// Sender.
    pub src: IpAddr,
    /// Receiver.
    pub dst: IpAddr,
    /// Number of the transport protocol.
    pub protocol: u8,
    /// Which part this is.
    pub piece: Piece,
    /// Ports of sender and receiver, if TCP, UDP or SCTP and not a later fragment.
    pub ports: Option<(u16, u16)>,
    /// Differentiated services and ECN.
    pub dsfield: u8,
    /// Where the transport header begins, from the start of the frame.
    pub transport_at: usize,
}

impl Packet {
    /// Reads the packet behind `header`. `frame` is a window on the frame's start,
    /// `frame_len` the length of all of it. `None` if it is no IP or not whole.
    pub fn parse(header: &Header, frame: &[u8], frame_len: usize) -> Option<Self> {
        let at = header.packet_at();
        let bytes = frame.get(at..)?;
        let room = frame_len.checked_sub(at)?;
        match header.ether_type {
            0x0800 => Self::v4(bytes, room, at),
            0x86dd => Self::v6(bytes, room, at),
            _ => None,
        }
    }

    /// Of a frame in pieces.
    pub fn of(header: &Header, frame: &Chain) -> Option<Self> {
        with_window(frame, |bytes| Self::parse(header, bytes, frame.len()))
    }

    /// Of the start of a packet of IPv6, which may be cut short behind its ports.
    pub(crate) fn quoted_v6(bytes: &[u8]) -> Option<Self> {
        Self::v6(bytes, usize::MAX, 0)
    }

    /// The same packet as if the other end had sent it.
    pub(crate) fn reversed(self) -> Self {
        Self {
            src: self.dst,
            dst: self.src,
            ports: self.ports.map(|(src, dst)| (dst, src)),
            ..self
        }
    }

    fn v4(bytes: &[u8], room: usize, at: usize) -> Option<Self> {
        let view = Ipv4View::parse(bytes, room).ok()?;
        let piece = match (view.is_fragment(), view.fragment_offset()) {
            (false, _) => Piece::Whole,
            (true, 0) => Piece::First,
            (true, _) => Piece::Later,
        };
        let header_len = view.header().len();
        Self {
            src: view.src().into(),
            dst: view.dst().into(),
            protocol: view.protocol().number(),
            piece,
            ports: None,
            dsfield: view.tos(),
            transport_at: at + header_len,
        }
        .with_ports(bytes.get(header_len..)?)
    }

    fn v6(bytes: &[u8], room: usize, at: usize) -> Option<Self> {
        let view = Ipv6View::parse(bytes, room).ok()?;
        let mut packet = Self {
            src: view.src().into(),
            dst: view.dst().into(),
            protocol: view.next_header(),
            piece: Piece::Whole,
            ports: None,
            dsfield: u8::try_from((u16::from_be_bytes([bytes[0], bytes[1]]) >> 4) & 0xff).ok()?,
            transport_at: at + wire::IPV6_HEADER_BYTES,
        };
        let mut rest = bytes.get(wire::IPV6_HEADER_BYTES..)?;
        for _ in 0..EXTENSIONS_MAX {
            match packet.extension(rest)? {
                Some(len) => {
                    rest = rest.get(len..)?;
                    packet.transport_at += len;
                }
                None => return packet.with_ports(rest),
            }
        }
        None
    }

    /// Steps over the extension header at the start of `rest`: its length, `Some(None)`
    /// at the transport header, `None` if it is cut off.
    fn extension(&mut self, rest: &[u8]) -> Option<Option<usize>> {
        if self.piece == Piece::Later {
            return Some(None);
        }
        let unit = match self.protocol {
            HOP_BY_HOP | ROUTING | DESTINATION => 8,
            AUTHENTICATION => 4,
            FRAGMENT => 0,
            _ => return Some(None),
        };
        let &[next, len, f0, f1] = rest.first_chunk()?;
        self.protocol = next;
        if unit == 0 {
            let field = u16::from_be_bytes([f0, f1]);
            self.piece = match (field >> 3, field & 1) {
                (0, 0) => Piece::Whole,
                (0, _) => Piece::First,
                _ => Piece::Later,
            };
            return Some(Some(8));
        }
        let fixed = if unit == 4 { 2 } else { 1 };
        Some(Some((usize::from(len) + fixed) * unit))
    }

    fn with_ports(mut self, transport: &[u8]) -> Option<Self> {
        if matches!(self.protocol, TCP | UDP | SCTP) && self.piece != Piece::Later {
            let &[s0, s1, d0, d1] = transport.first_chunk()?;
            self.ports = Some((u16::from_be_bytes([s0, s1]), u16::from_be_bytes([d0, d1])));
        }
        Some(self)
    }
}
