//! Where frames pass, and who looks on.
//!
//! Only here it is decided what a frame is called: its interface, protocol and packet type.

use alloc::sync::Arc;
use alloc::vec::Vec;

use capture::{Frame, Now, Sender, Tag, Timestamp, status};
use link::vlan::TAG_TYPE;
use mbuf::{Chain, Checksum, RxFrame, TxFrame};
use wire::{ETHERNET_HEADER_BYTES, MacAddr};

use super::drops::{self, DropReason};
use super::listener::Listener;
use crate::stack::NetStack;
use crate::stack::Shared;
use crate::stack::interface::{Interface, LOOPBACK};
use mach::mem::fallible::TryGrow;

/// To whom a frame was addressed (include/uapi/linux/if_packet.h).
pub(super) const PACKET_HOST: u8 = 0;
const PACKET_BROADCAST: u8 = 1;
const PACKET_MULTICAST: u8 = 2;
const PACKET_OTHERHOST: u8 = 3;
pub(super) const PACKET_OUTGOING: u8 = 4;

/// Smaller numbers in a type's place are lengths (IEEE 802.3); Linux calls those frames so.
const ETHER_TYPE_MIN: u16 = 0x600;
const PROTOCOL_802_2: u16 = 4;

/// An interface has received a frame.
#[inline(always)]
pub(crate) fn received(stack: &Shared, interface: u32, frame: &RxFrame) {
    if !stack.sniffers.is_empty() {
        show_received(stack, interface, frame);
    }
}

/// An interface is given a frame.
#[inline(always)]
pub(crate) fn sent(stack: &Shared, interface: u32, frame: &TxFrame) {
    if !stack.sniffers.is_empty() {
        show_sent(stack, interface, frame, None);
    }
}

/// A packet, from its IP header on, goes from us to us. Linux shows it twice, as it goes
/// and as it comes; here it comes.
#[inline(always)]
pub(crate) fn looped(stack: &Shared, packet: &Chain) {
    if !stack.sniffers.is_empty() {
        show_looped(stack, packet);
    }
}

#[cold]
fn show_received(stack: &Shared, interface: u32, frame: &RxFrame) {
    let checksum = match frame.checksum {
        Checksum::Unknown => 0,
        Checksum::Verified => status::CHECKSUM_VALID,
        Checksum::Partial(_) => status::CHECKSUM_NOT_READY,
    };
    let Some(card) = stack.interfaces.get(interface) else {
        return;
    };
    let to_whom = |header: &[u8; ETHERNET_HEADER_BYTES]| packet_type(header, &card);
    let tag = frame.tag.map(taken_out);
    show_ethernet(stack, (&frame.chain, tag), &card, checksum, to_whom, None);
}

/// A frame that `by` sends, or the stack; it is not shown to who sends it.
#[cold]
pub(super) fn show_sent(
    stack: &Shared,
    interface: u32,
    frame: &TxFrame,
    by: Option<&Arc<Listener>>,
) {
    let checksum = match frame.checksum.is_some() || frame.segment.is_some() {
        true => status::CHECKSUM_NOT_READY,
        false => 0,
    };
    let Some(card) = stack.interfaces.get(interface) else {
        return;
    };
    show_ethernet(
        stack,
        (&frame.chain, frame.tag.map(taken_out)),
        &card,
        checksum,
        |_| PACKET_OUTGOING,
        by,
    );
}

#[cold]
fn show_looped(stack: &Shared, packet: &Chain) {
    let Some(interface) = stack.interfaces.get(LOOPBACK) else {
        return;
    };
    let version = packet.front().and_then(|front| front.bytes().first());
    let protocol = match version.map(|byte| byte >> 4) {
        Some(6) => wire::EtherType::Ipv6,
        _ => wire::EtherType::Ipv4,
    };
    let mut header = [0; ETHERNET_HEADER_BYTES];
    let [.., high, low] = &mut header;
    [*high, *low] = protocol.number().to_be_bytes();
    let frame = Frame {
        parts: &[],
        network: ETHERNET_HEADER_BYTES,
        interface: interface.number,
        hardware_type: interface.hardware_type,
        protocol: protocol.number(),
        packet_type: PACKET_HOST,
        sender: Sender::new(&interface.mac),
        tag: None,
        flow_hash: 0,
        checksum: status::CHECKSUM_NOT_READY,
    };
    let parts = core::iter::once(&header[..]).chain(packet.slices());
    show(stack, frame, parts, packet.parts() + 1, None);
}

fn packet_type(header: &[u8; ETHERNET_HEADER_BYTES], card: &Interface) -> u8 {
    let [a, b, c, d, e, f, ..] = *header;
    let destination = MacAddr([a, b, c, d, e, f]);
    if destination == MacAddr::BROADCAST {
        PACKET_BROADCAST
    } else if destination.is_multicast() {
        PACKET_MULTICAST
    } else if destination.0 == card.mac {
        PACKET_HOST
    } else {
        PACKET_OTHERHOST
    }
}

fn taken_out(control: u16) -> Tag {
    Tag {
        control,
        ether_type: TAG_TYPE,
    }
}

fn show_ethernet(
    stack: &Shared,
    (chain, tag): (&Chain, Option<Tag>),
    card: &Interface,
    checksum: u32,
    to_whom: impl FnOnce(&[u8; ETHERNET_HEADER_BYTES]) -> u8,
    by: Option<&Arc<Listener>>,
) {
    let mut header = [0; ETHERNET_HEADER_BYTES];
    if chain.copy_to_slice(0, &mut header) < header.len() {
        return drops::count(DropReason::Runt);
    }
    let [_, _, _, _, _, _, sender @ .., high, low] = header;
    let protocol = match u16::from_be_bytes([high, low]) {
        0..ETHER_TYPE_MIN => PROTOCOL_802_2,
        ether_type => ether_type,
    };
    let frame = Frame {
        parts: &[],
        network: ETHERNET_HEADER_BYTES,
        interface: card.number,
        hardware_type: card.hardware_type,
        protocol,
        packet_type: to_whom(&header),
        sender: Sender::new(&sender),
        tag,
        flow_hash: 0,
        checksum,
    };
    show(stack, frame, chain.slices(), chain.parts(), by);
}

/// Shows `frame`, which `parts` make up, to all listeners.
fn show<'a>(
    stack: &Shared,
    frame: Frame<'_>,
    parts: impl Iterator<Item = &'a [u8]>,
    count: usize,
    by: Option<&Arc<Listener>>,
) {
    let mut list: Vec<&[u8]> = Vec::new();
    if list.make_room(count).is_err() {
        return drops::count(DropReason::NoMemory);
    }
    list.extend(parts.take(count));
    let frame = Frame {
        parts: &list,
        ..frame
    };
    let now = now();
    stack.sniffers.each(|listener| {
        if !by.is_some_and(|by| Arc::ptr_eq(by, listener)) {
            listener.hear(&frame, now);
        }
    });
}

/// The time, for the timer and to be shown.
pub(crate) fn now() -> Now {
    let wall = clock::wall_now();
    Now {
        clock: mach::time::now(),
        wall: Timestamp {
            seconds: wall.as_secs() as u32,
            nanoseconds: wall.subsec_nanos(),
        },
    }
}

/// A socket that listens, for tools.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The socket's number.
    pub number: u64,
    /// Linux's number of its type.
    pub kind: u8,
    /// The EtherType that it wants, or [`super::PROTOCOL_ALL`].
    pub protocol: u16,
    /// The interface; 0 for all.
    pub interface: u32,
    /// Bytes in its queue.
    pub queued: usize,
}

/// All sockets that listen to a stack.
pub fn sockets(stack: &NetStack) -> Vec<Entry> {
    let mut all = Vec::new();
    stack
        .shared
        .sniffers
        .each(|listener| all.push(listener.entry()));
    all
}
