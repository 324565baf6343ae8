//! IPv4 and IPv6.

use crate::bytes::{ipv4_at, ipv6_at, u8_at, u16_at};
use crate::dissection::Dissection;
use crate::layer::Layer;
use crate::transport;

const IPV4_BYTES_MIN: usize = 20;
const IPV6_BYTES: usize = 40;

/// Flags beside the fragment's offset.
const DONT_FRAGMENT: u16 = 0x4000;
const MORE_FRAGMENTS: u16 = 0x2000;
const OFFSET_MASK: u16 = 0x1fff;

/// Extension headers of IPv6 that are passed over: hop-by-hop, routing, destination.
const PASSED_OVER: [u8; 3] = [0, 43, 60];
const FRAGMENT: u8 = 44;
/// Extension headers that are looked through.
const EXTENSIONS_MAX: usize = 8;

/// Reads an IPv4 header and what follows.
pub fn ipv4(all: &mut Dissection, bytes: &[u8]) {
    if try_ipv4(all, bytes).is_none() {
        all.push(Layer::malformed("IP", "IP", bytes.len()));
    }
}

fn try_ipv4(all: &mut Dissection, bytes: &[u8]) -> Option<()> {
    let first = u8_at(bytes, 0)?;
    let header_bytes = usize::from(first & 0xf) * 4;
    if first >> 4 != 4 || header_bytes < IPV4_BYTES_MIN {
        return None;
    }
    let (total, ident) = (u16_at(bytes, 2)?, u16_at(bytes, 4)?);
    let fragment = u16_at(bytes, 6)?;
    let (tos, ttl, protocol) = (u8_at(bytes, 1)?, u8_at(bytes, 8)?, u8_at(bytes, 9)?);
    let (from, to) = (ipv4_at(bytes, 12)?, ipv4_at(bytes, 16)?);
    let offset = usize::from(fragment & OFFSET_MASK) * 8;
    let is_whole = fragment & (MORE_FRAGMENTS | OFFSET_MASK) == 0;
    let part = match is_whole {
        true => String::new(),
        false => format!(", fragment at {offset}"),
    };
    let layer = Layer::new("IP", "IP")
        .field("Header length", format!("{header_bytes} bytes"))
        .field("Type of service", format!("0x{tos:02x}"))
        .field("Total length", format!("{total} bytes"))
        .field("Identification", ident)
        .field("Do not fragment", fragment & DONT_FRAGMENT != 0)
        .field("More fragments", fragment & MORE_FRAGMENTS != 0)
        .field("Fragment offset", format!("{offset} bytes"))
        .field("Time to live", format!("{ttl} hops"))
        .field("Protocol", transport::name(protocol))
        .field("Header checksum", format!("{:04x}", u16_at(bytes, 10)?))
        .field("Source address", from)
        .field("Destination address", to);
    all.between(from, to);
    all.push(layer.summed_up(format!(
        "D={to} S={from} LEN={total}, ID={ident}, TOS=0x{tos:x}, TTL={ttl}{part}"
    )));
    if offset == 0 {
        let payload = bytes.get(header_bytes..).unwrap_or_default();
        let len = usize::from(total).saturating_sub(header_bytes);
        transport::dissect(all, protocol, payload, len);
    }
    Some(())
}

/// Reads an IPv6 header and what follows.
pub fn ipv6(all: &mut Dissection, bytes: &[u8]) {
    if try_ipv6(all, bytes).is_none() {
        all.push(Layer::malformed("IPv6", "IPv6", bytes.len()));
    }
}

fn try_ipv6(all: &mut Dissection, bytes: &[u8]) -> Option<()> {
    if u8_at(bytes, 0)? >> 4 != 6 {
        return None;
    }
    let (len, next, hops) = (u16_at(bytes, 4)?, u8_at(bytes, 6)?, u8_at(bytes, 7)?);
    let (from, to) = (ipv6_at(bytes, 8)?, ipv6_at(bytes, 24)?);
    let layer = Layer::new("IPv6", "IPv6")
        .field("Payload length", len)
        .field("Next header", transport::name(next))
        .field("Hop limit", hops)
        .field("Source address", from)
        .field("Destination address", to);
    all.between(from, to);
    all.push(layer.summed_up(format!("S={from} D={to} LEN={len}, HOPS={hops}")));
    let payload = bytes.get(IPV6_BYTES..).unwrap_or_default();
    behind_extensions(all, next, payload, usize::from(len));
    Some(())
}

/// Looks for the transport behind a bounded number of extension headers.
fn behind_extensions(all: &mut Dissection, mut next: u8, mut bytes: &[u8], mut len: usize) {
    for _ in 0..EXTENSIONS_MAX {
        if !PASSED_OVER.contains(&next) {
            break;
        }
        let Some([following, words]) = bytes.first_chunk().copied() else {
            return;
        };
        let header_bytes = (usize::from(words) + 1) * 8;
        bytes = bytes.get(header_bytes..).unwrap_or_default();
        len = len.saturating_sub(header_bytes);
        next = following;
    }
    if next != FRAGMENT {
        transport::dissect(all, next, bytes, len);
    }
}
