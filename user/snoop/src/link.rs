//! Ethernet, Linux's cooked headers, and ARP.

use crate::Seen;
use crate::bytes::{ipv4_at, station_at, u8_at, u16_at};
use crate::dissection::Dissection;
use crate::layer::Layer;
use crate::network;

/// Link types of tcpdump.org's list.
const ETHERNET: i32 = 1;
const RAW_IP: i32 = 101;
const COOKED: i32 = 113;
const COOKED_2: i32 = 276;

const ETHERNET_BYTES: usize = 14;
const COOKED_BYTES: usize = 16;
const COOKED_2_BYTES: usize = 20;
/// Bytes of the four that a tag adds, EtherType behind it.
const TAG_BYTES: usize = 4;

const IPV4: u16 = 0x0800;
const ARP: u16 = 0x0806;
const TAGGED: u16 = 0x8100;
const IPV6: u16 = 0x86dd;

/// Reads the headers of a packet that came by a link of this type (tcpdump.org's list).
pub fn dissect(link_type: i32, seen: &Seen<'_>) -> Dissection {
    let mut all = Dissection::default();
    let done = match link_type {
        ETHERNET => ethernet(&mut all, seen),
        COOKED => cooked(&mut all, seen, (COOKED_BYTES, 14)),
        COOKED_2 => cooked(&mut all, seen, (COOKED_2_BYTES, 0)),
        RAW_IP => raw(&mut all, seen),
        _ => None,
    };
    if done.is_none() {
        all.push(Layer::malformed("LINK", "Link", seen.bytes.len()));
    }
    all
}

fn ethernet(all: &mut Dissection, seen: &Seen<'_>) -> Option<()> {
    let bytes = seen.bytes;
    let (to, from) = (station_at(bytes, 0)?, station_at(bytes, 6)?);
    let mut ether_type = u16_at(bytes, 12)?;
    let mut header_bytes = ETHERNET_BYTES;
    let mut layer = Layer::new("ETHER", "Ether")
        .field("Packet size", format!("{} bytes", seen.len))
        .field("Destination", &to)
        .field("Source", &from);
    if ether_type == TAGGED {
        let tag = u16_at(bytes, 14)?;
        layer = layer.field("VLAN", tag & 0xfff);
        ether_type = u16_at(bytes, 16)?;
        header_bytes += TAG_BYTES;
    }
    let name = type_name(ether_type);
    let layer = layer
        .field("Ethertype", format!("{ether_type:04x} ({name})"))
        .summed_up(format!(
            "Type={ether_type:04X} ({name}), size={} bytes",
            seen.len
        ));
    all.between(from, to);
    all.push(layer);
    payload(all, seen, header_bytes, ether_type);
    Some(())
}

fn raw(all: &mut Dissection, seen: &Seen<'_>) -> Option<()> {
    let ether_type = match u8_at(seen.bytes, 0)? >> 4 {
        6 => IPV6,
        _ => IPV4,
    };
    payload(all, seen, 0, ether_type);
    Some(())
}

/// The headers that Linux puts in front of packets of any interface.
fn cooked(
    all: &mut Dissection,
    seen: &Seen<'_>,
    (header_bytes, type_at): (usize, usize),
) -> Option<()> {
    let ether_type = u16_at(seen.bytes, type_at)?;
    seen.bytes.get(..header_bytes)?;
    let name = type_name(ether_type);
    let layer = Layer::new("COOKED", "Linux Cooked")
        .field("Packet size", format!("{} bytes", seen.len))
        .field("Ethertype", format!("{ether_type:04x} ({name})"))
        .summed_up(format!(
            "Type={ether_type:04X} ({name}), size={} bytes",
            seen.len
        ));
    all.push(layer);
    payload(all, seen, header_bytes, ether_type);
    Some(())
}

fn payload(all: &mut Dissection, seen: &Seen<'_>, header_bytes: usize, ether_type: u16) {
    let bytes = seen.bytes.get(header_bytes..).unwrap_or_default();
    match ether_type {
        IPV4 => network::ipv4(all, bytes),
        IPV6 => network::ipv6(all, bytes),
        ARP => arp(all, bytes),
        _ => {}
    }
}

fn type_name(ether_type: u16) -> &'static str {
    match ether_type {
        IPV4 => "IP",
        IPV6 => "IPv6",
        ARP => "ARP",
        0..0x600 => "LLC",
        _ => "unknown",
    }
}

fn arp(all: &mut Dissection, bytes: &[u8]) {
    let layer = try_arp(bytes);
    all.push(layer.unwrap_or_else(|| Layer::malformed("ARP", "ARP/RARP", bytes.len())));
}

fn try_arp(bytes: &[u8]) -> Option<Layer> {
    let operation = u16_at(bytes, 6)?;
    let (sender, sender_ip) = (station_at(bytes, 8)?, ipv4_at(bytes, 14)?);
    let (target, target_ip) = (station_at(bytes, 18)?, ipv4_at(bytes, 24)?);
    let summary = match operation {
        1 => format!("C Who is {target_ip} ?"),
        2 => format!("R {sender_ip} is {sender}"),
        _ => format!("operation {operation}"),
    };
    let layer = Layer::new("ARP", "ARP/RARP")
        .field("Opcode", operation)
        .field("Sender's hardware address", sender)
        .field("Sender's protocol address", sender_ip)
        .field("Target hardware address", target)
        .field("Target protocol address", target_ip);
    Some(layer.summed_up(summary))
}
