//! Fields at offsets, where there are that many bytes.

use std::net::{Ipv4Addr, Ipv6Addr};

/// The `N` bytes at `at`.
pub fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

/// The byte at `at`.
pub fn u8_at(bytes: &[u8], at: usize) -> Option<u8> {
    bytes.get(at).copied()
}

/// The big-endian number of two bytes at `at`.
pub fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    array(bytes, at).map(u16::from_be_bytes)
}

/// The big-endian number of four bytes at `at`.
pub fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    array(bytes, at).map(u32::from_be_bytes)
}

/// The IPv4 address at `at`.
pub fn ipv4_at(bytes: &[u8], at: usize) -> Option<Ipv4Addr> {
    array::<4>(bytes, at).map(Ipv4Addr::from)
}

/// The IPv6 address at `at`.
pub fn ipv6_at(bytes: &[u8], at: usize) -> Option<Ipv6Addr> {
    array::<16>(bytes, at).map(Ipv6Addr::from)
}

/// The Ethernet address at `at`, as people write it.
pub fn station_at(bytes: &[u8], at: usize) -> Option<String> {
    let [a, b, c, d, e, f] = array(bytes, at)?;
    Some(format!("{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}"))
}
