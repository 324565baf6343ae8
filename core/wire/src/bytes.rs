//! Reading and writing big-endian fields at fixed offsets.
//!
//! Reads beyond the end yield zero and writes there do nothing: callers have checked the
//! length of the header before, and the compiler removes what it can prove.

use core::net::{Ipv4Addr, Ipv6Addr};

#[inline]
pub(crate) fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes
        .get(at..)
        .and_then(|rest| rest.first_chunk::<N>())
        .copied()
        .unwrap_or([0; N])
}

#[inline]
pub(crate) fn u8_at(bytes: &[u8], at: usize) -> u8 {
    bytes.get(at).copied().unwrap_or(0)
}

#[inline]
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes(array(bytes, at))
}

#[inline]
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(array(bytes, at))
}

#[inline]
pub(crate) fn ipv4_at(bytes: &[u8], at: usize) -> Ipv4Addr {
    Ipv4Addr::from(array::<4>(bytes, at))
}

#[inline]
pub(crate) fn ipv6_at(bytes: &[u8], at: usize) -> Ipv6Addr {
    Ipv6Addr::from(array::<16>(bytes, at))
}

#[inline]
pub(crate) fn put<const N: usize>(bytes: &mut [u8], at: usize, value: [u8; N]) {
    if let Some(field) = bytes
        .get_mut(at..)
        .and_then(|rest| rest.first_chunk_mut::<N>())
    {
        *field = value;
    }
}

#[inline]
pub(crate) fn put_u16(bytes: &mut [u8], at: usize, value: u16) {
    put(bytes, at, value.to_be_bytes());
}

#[inline]
pub(crate) fn put_u32(bytes: &mut [u8], at: usize, value: u32) {
    put(bytes, at, value.to_be_bytes());
}
