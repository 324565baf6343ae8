//! Who sees packets of other transports than TCP and UDP: raw sockets (raw(7)).
//!
//! The stack shows each such packet that is for us, whole and with its IP header, and then
//! answers it as if nobody had looked (an echo request) or refuses it if nobody has. What a
//! socket wants is a protocol, perhaps addresses, types of ICMP, and what its filter says;
//! the rest (queue, times, drops) is that of packet sockets.
//!
//! Lock order: a shard, the list of listeners, a listener.
//! Not here: raw sockets for TCP and UDP, of IPv6, and IP headers that programs write.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::net::Ipv4Addr;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use capture::{Frame, Sender, View};
use inet::RawPacket;
use mach::sync::Spin;

use super::interface::{LOOPBACK, interface};
use crate::packet::{self, Audience, Binding, Listener};

const ICMP: u8 = 1;

/// Everybody who looks on.
pub(super) static LISTENERS: Audience<RawListener> = Audience::new();

/// The receiving half of a raw socket.
pub(super) struct RawListener {
    pub hearing: Arc<Listener>,
    pub protocol: u8,
    names: Spin<Names>,
    /// Types of ICMP messages that are not wanted, by bit (ICMP_FILTER).
    pub blocked_types: AtomicU32,
}

/// Addresses of a raw socket; `None` for any.
#[derive(Clone, Copy, Default)]
pub(super) struct Names {
    pub local: Option<Ipv4Addr>,
    pub peer: Option<Ipv4Addr>,
}

impl RawListener {
    pub(super) fn new(protocol: u8) -> Arc<Self> {
        let hearing = Listener::new(View::Link);
        hearing.bind(Binding {
            interface: 0,
            protocol: packet::PROTOCOL_ALL,
        });
        Arc::new(Self {
            hearing,
            protocol,
            names: Spin::new(Names::default()),
            blocked_types: AtomicU32::new(0),
        })
    }

    pub(super) fn names(&self) -> Names {
        *self.names.lock()
    }

    pub(super) fn rename(&self, change: impl FnOnce(&mut Names)) {
        change(&mut self.names.lock());
    }

    fn wants(&self, packet: &RawPacket<'_>) -> bool {
        let Names { local, peer } = self.names();
        self.protocol == packet.protocol
            && local.is_none_or(|local| local == packet.dst)
            && peer.is_none_or(|peer| peer == packet.src)
            && !self.blocks(packet)
    }

    fn blocks(&self, packet: &RawPacket<'_>) -> bool {
        let mut kind = [u8::MAX];
        packet.payload.copy_to_slice(0, &mut kind);
        let [kind] = kind;
        let bit = 1_u32.checked_shl(kind.into()).unwrap_or(0);
        packet.protocol == ICMP && self.blocked_types.load(Relaxed) & bit != 0
    }
}

/// Shows a packet that came by the interface `by` to all who want it; whether there was any.
pub(super) fn show(by: u32, packet: &RawPacket<'_>) -> bool {
    if LISTENERS.is_empty() {
        return false;
    }
    let mut is_seen = false;
    let mut parts: Vec<&[u8]> = Vec::new();
    if parts.try_reserve_exact(packet.payload.parts() + 1).is_err() {
        return false;
    }
    parts.push(packet.header);
    parts.extend(packet.payload.slices());
    let number = match packet.src.is_loopback() {
        true => LOOPBACK,
        false => by,
    };
    let frame = Frame {
        parts: &parts,
        network: 0,
        interface: number,
        hardware_type: interface(number).map_or(0, |of| of.hardware_type),
        protocol: wire::EtherType::Ipv4.number(),
        packet_type: 0,
        sender: Sender::default(),
        tag: None,
        flow_hash: 0,
        checksum: 0,
    };
    let now = packet::now();
    LISTENERS.each(|listener| {
        if listener.wants(packet) {
            is_seen = true;
            listener.hearing.hear(&frame, now);
        }
    });
    is_seen
}
