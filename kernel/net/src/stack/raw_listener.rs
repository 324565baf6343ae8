//! Who sees packets whole: raw sockets (raw(7)).
//!
//! The stack shows each packet that is for us with its IP headers, and then treats it as if nobody
//! had looked, but that a protocol that somebody takes is not refused. Packets of TCP and UDP
//! are shown once somebody has asked for one of them. What a socket wants is a protocol, perhaps
//! addresses, types of ICMP, and what its filter says; the rest (queue, times, drops) is that of
//! packet sockets. Packets of IPv6 are kept with their first header, which programs hear of
//! by control messages only.
//!
//! Lock order: a shard, the list of listeners, a listener.
//! Not here: sending, and IPv6's extension headers, which nobody is shown.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::net::IpAddr;
use core::sync::atomic::{AtomicI32, AtomicU32, Ordering::Relaxed};

use capture::{Frame, Sender, View};
use inet::RawPacket;
use mach::sync::Spin;
use wire::{EtherType, IPV6_HEADER_BYTES, Sum};

use super::interface::LOOPBACK;
use super::{NetStack, Shared};
use crate::packet::{self, Binding, Listener};
use sync::Result;
use vfs::socket::Family;

/// The protocol that raw sockets of IPv4 take most.
pub const ICMP: u8 = 1;
/// The same of IPv6.
pub const ICMPV6: u8 = 58;
/// Those of the transports.
const TCP: u8 = 6;
const UDP: u8 = 17;
/// Where ICMPv6's checksum lies.
const ICMPV6_CHECKSUM_AT: i32 = 2;
/// Where the number of what follows stands in IPv6's header.
const NEXT_HEADER_AT: usize = 6;

/// The receiving half of a raw socket.
pub struct RawListener {
    /// Its queue and its filter.
    pub hearing: Arc<Listener>,
    /// Of the packets that it takes.
    pub family: Family,
    /// IANA's number of the protocol that it takes.
    pub protocol: u8,
    names: Spin<Names>,
    /// Types of ICMP messages that are not wanted, by bit (ICMP_FILTER, ICMP6_FILTER).
    pub blocked_types: Spin<[u32; 8]>,
    /// IPV6_CHECKSUM.
    pub checksum_at: AtomicI32,
    /// The interface by which packets must come, or 0 (SO_BINDTODEVICE).
    pub device: AtomicU32,
}

/// Addresses of a raw socket; `None` for any.
#[derive(Clone, Copy, Default)]
pub struct Names {
    /// What it is bound to.
    pub local: Option<IpAddr>,
    /// What it is connected to.
    pub peer: Option<IpAddr>,
    /// Means nothing, but is told again.
    pub peer_port: u16,
}

impl RawListener {
    /// The half of a socket that hears nothing yet.
    pub fn new(family: Family, protocol: u8) -> Arc<Self> {
        let hearing = Listener::new(View::Link);
        hearing.bind(Binding {
            interface: 0,
            protocol: packet::PROTOCOL_ALL,
        });
        Arc::new(Self {
            hearing,
            family,
            protocol,
            names: Spin::new(Names::default()),
            blocked_types: Spin::new([0; 8]),
            checksum_at: AtomicI32::new(match (family, protocol) {
                (Family::Inet6, ICMPV6) => ICMPV6_CHECKSUM_AT,
                _ => -1,
            }),
            device: AtomicU32::new(0),
        })
    }

    /// The addresses that it has.
    pub fn names(&self) -> Names {
        *self.names.lock()
    }

    /// Changes them.
    pub fn rename(&self, change: impl FnOnce(&mut Names)) {
        change(&mut self.names.lock());
    }

    /// Whether it takes packets that have sockets of their own.
    pub fn is_of_transport(&self) -> bool {
        matches!(self.protocol, TCP | UDP)
    }

    /// Bytes of IP's header that are kept in front of what the program reads.
    pub fn hidden_bytes(&self) -> usize {
        match self.family {
            Family::Inet6 => IPV6_HEADER_BYTES,
            _ => 0,
        }
    }

    fn wants(&self, packet: &RawPacket<'_>, by: u32) -> bool {
        let device = self.device.load(Relaxed);
        if device != 0 && device != by {
            return false;
        }
        let Names { local, peer, .. } = self.names();
        self.protocol == packet.protocol
            && packet.dst.is_ipv6() == (self.family == Family::Inet6)
            && local.is_none_or(|local| local == packet.dst)
            && peer.is_none_or(|peer| peer == packet.src)
            && !self.blocks(packet)
            && self.is_sound(packet)
    }

    fn blocks(&self, packet: &RawPacket<'_>) -> bool {
        let mut kind = [0];
        let has_kind = packet.payload.copy_to_slice(0, &mut kind) == kind.len();
        let [kind] = kind;
        let word = self.blocked_types.lock()[usize::from(kind / 32)];
        has_kind && matches!(packet.protocol, ICMP | ICMPV6) && word & 1 << (kind % 32) != 0
    }

    /// Whether the checksum is right, if the program wants to have it looked at.
    fn is_sound(&self, packet: &RawPacket<'_>) -> bool {
        let (IpAddr::V6(src), IpAddr::V6(dst)) = (packet.src, packet.dst) else {
            return true;
        };
        let len = packet.payload.len() as u32;
        let pseudo = || Sum::pseudo_v6(src, dst, packet.protocol, len);
        self.checksum_at.load(Relaxed) < 0
            || packet
                .payload
                .slices()
                .fold(pseudo(), Sum::bytes)
                .is_valid()
    }
}

/// Whether somebody has asked for packets of TCP or UDP.
pub(crate) fn is_transport_shown(shared: &Shared) -> bool {
    let mut is_shown = false;
    shared
        .raw
        .each(|listener| is_shown |= listener.is_of_transport());
    is_shown
}

/// Shows a packet that came by the interface `by` to all who want it; whether there was any.
pub(crate) fn show(shared: &Shared, by: u32, packet: &RawPacket<'_>) -> bool {
    if shared.raw.is_empty() {
        return false;
    }
    let mut parts: Vec<&[u8]> = Vec::new();
    if parts.try_reserve_exact(packet.payload.parts() + 1).is_err() {
        return false;
    }
    let plain = first_header(packet);
    let is_v6 = packet.dst.is_ipv6();
    parts.push(if is_v6 { &plain } else { packet.header });
    parts.extend(packet.payload.slices());
    let number = match packet.src.is_loopback() {
        true => LOOPBACK,
        false => by,
    };
    let ether_type = match is_v6 {
        true => EtherType::Ipv6,
        false => EtherType::Ipv4,
    };
    let frame = Frame {
        parts: &parts,
        network: 0,
        interface: number,
        hardware_type: shared.interfaces.hardware_type(number),
        protocol: ether_type.number(),
        packet_type: 0,
        sender: Sender::default(),
        tag: None,
        flow_hash: 0,
        checksum: 0,
    };
    let now = packet::now();
    let mut is_seen = false;
    shared.raw.each(|listener| {
        if listener.wants(packet, number) {
            is_seen = true;
            let hidden = listener.hidden_bytes();
            listener.hearing.hear_whole(&frame, hidden, now);
        }
    });
    is_seen
}

impl NetStack {
    /// Shows packets to `listener` from now on.
    ///
    /// Errors: `OutOfMemory`.
    pub fn add_raw(&self, listener: &Arc<RawListener>) -> Result<()> {
        self.shared.raw.add(listener)
    }

    /// Shows it no more.
    pub fn remove_raw(&self, listener: &Arc<RawListener>) {
        self.shared.raw.remove(listener);
    }
}

/// IPv6's header as if no extensions had followed.
fn first_header(packet: &RawPacket<'_>) -> [u8; IPV6_HEADER_BYTES] {
    let mut plain = [0; IPV6_HEADER_BYTES];
    if let Some(first) = packet.header.first_chunk() {
        plain = *first;
    }
    plain[NEXT_HEADER_AT] = packet.protocol;
    plain
}
