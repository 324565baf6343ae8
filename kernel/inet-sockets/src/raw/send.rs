//! What raw sockets send: bytes behind an IP header of ours, or behind their own.
//!
//! A header that a program writes (IP_HDRINCL) is taken as it is, but for what Linux fills in:
//! IPv4's length and checksum, and its source and identification where they are zero. The way
//! is that to the address that the call names. Where a raw socket of IPv6 says at which offset
//! its checksum lies, it is filled in.

use alloc::vec::Vec;
use core::net::IpAddr;

use inet::RawHeader;
use mach::mem::fallible;
use mbuf::Chain;
use mm::io::Source;
use sync::{Error, Result};
use wire::{IPV4_HEADER_BYTES, IPV6_HEADER_BYTES, Sum};

use net::Answer;
use net::after_send;
use net::packet::chain_of;
use net::stack::NetStack;
use net::stack::env::Link;

/// Bytes that a packet has at most, and of it behind IPv4's header.
const PACKET_BYTES_MAX: usize = u16::MAX as usize;
const PAYLOAD_BYTES_MAX: usize = PACKET_BYTES_MAX - IPV4_HEADER_BYTES;
/// The longest IPv4 header.
const HEADER_BYTES_MAX: usize = 60;
/// Where IPv4 and IPv6 name the protocol.
const PROTOCOL_AT: usize = 9;
const NEXT_HEADER_AT: usize = 6;

/// Sends all of `from` behind `header`, with a checksum at `checksum_at` if there is to be one.
///
/// Errors: `MessageTooLong`, `Invalid` where the checksum does not lie in it, those of the stack.
pub(crate) fn send(
    of: &NetStack,
    header: &RawHeader,
    checksum_at: Option<usize>,
    from: &mut Source<'_>,
) -> Result<usize> {
    let len = from.remaining();
    check_size(header, len)?;
    let payload = match checksum_at {
        None => chain_of(from)?,
        Some(at) => chain_of(&mut Source::kernel(&with_checksum(of, header, at, from)?))?,
    };
    let ends = (header.src, header.dst);
    let within = of.loopback_exit_of(ends, header.protocol, &payload);
    by_shard(of, header, within, |stack, link| {
        Ok(stack.send_raw(link, header, payload)?)
    })?;
    Ok(len)
}

/// Errors: `MessageTooLong` for more bytes than fit behind `header`.
pub(crate) fn check_size(header: &RawHeader, len: usize) -> Result<()> {
    let most = match header.dst {
        IpAddr::V4(_) => PAYLOAD_BYTES_MAX,
        IpAddr::V6(_) => PACKET_BYTES_MAX,
    };
    match len > most {
        true => Err(Error::MessageTooLong),
        false => Ok(()),
    }
}

/// The bytes of `from` with their checksum at `at`.
fn with_checksum(
    of: &NetStack,
    header: &RawHeader,
    at: usize,
    from: &mut Source<'_>,
) -> Result<Vec<u8>> {
    let mut bytes = fallible::zeroed(from.remaining())?;
    from.take_whole(&mut bytes)?;
    let dst = header.dst;
    let src = match header.src {
        Some(src) => src,
        None => by_shard(of, header, None, |stack, _| Ok(stack.source_for(dst)?))?,
    };
    let len = bytes.len() as u32;
    let pseudo = match (src, dst) {
        (IpAddr::V6(src), IpAddr::V6(dst)) => Sum::pseudo_v6(src, dst, header.protocol, len),
        _ => return Err(Error::Invalid),
    };
    bytes.get_mut(at..at + 2).ok_or(Error::Invalid)?.fill(0);
    let checksum = pseudo.bytes(&bytes).checksum().to_be_bytes();
    bytes[at..at + 2].copy_from_slice(&checksum);
    Ok(bytes)
}

/// Sends all of `from`, which begins with an IP header, where `header` says.
///
/// Errors: `Invalid` for what is no header, `MessageTooLong`, those of the stack.
pub(crate) fn send_written(
    of: &NetStack,
    header: &RawHeader,
    from: &mut Source<'_>,
) -> Result<usize> {
    let len = from.remaining();
    if len > PACKET_BYTES_MAX {
        return Err(Error::MessageTooLong);
    }
    let mut room = [0; HEADER_BYTES_MAX];
    let written = match header.dst {
        IpAddr::V4(dst) => {
            let written = take_v4(&mut room, from)?;
            let source = || {
                by_shard(of, header, None, |stack, _| {
                    Ok(stack.source_for(dst.into())?)
                })
            };
            fill_v4(written, len, source)?;
            written
        }
        IpAddr::V6(_) => take(&mut room, IPV6_HEADER_BYTES, from)?,
    };
    let written: &[u8] = written;
    let payload = match from.remaining() {
        0 => Chain::new(),
        _ => chain_of(from)?,
    };
    let protocol = match header.dst {
        IpAddr::V4(_) => written.get(PROTOCOL_AT),
        IpAddr::V6(_) => written.get(NEXT_HEADER_AT),
    };
    let ends = (header.src, header.dst);
    let within = protocol.and_then(|protocol| of.loopback_exit_of(ends, *protocol, &payload));
    by_shard(of, header, within, |stack, link| {
        Ok(stack.send_written(link, header, written, payload)?)
    })?;
    Ok(len)
}

fn take<'r>(
    room: &'r mut [u8; HEADER_BYTES_MAX],
    len: usize,
    from: &mut Source<'_>,
) -> Result<&'r mut [u8]> {
    if from.remaining() < len {
        return Err(Error::Invalid);
    }
    let header = &mut room[..len];
    from.take_whole(header)?;
    Ok(header)
}

/// The header with as many options as its first byte says.
fn take_v4<'r>(
    room: &'r mut [u8; HEADER_BYTES_MAX],
    from: &mut Source<'_>,
) -> Result<&'r mut [u8]> {
    let total = from.remaining();
    take(room, IPV4_HEADER_BYTES, from)?;
    let len = usize::from(room[0] & 0xf) * 4;
    if !(IPV4_HEADER_BYTES..=total).contains(&len) {
        return Err(Error::Invalid);
    }
    let header = &mut room[..len];
    from.take_whole(&mut header[IPV4_HEADER_BYTES..])?;
    Ok(header)
}

/// Fills in what programs leave to us, of a packet of `len` bytes.
fn fill_v4(header: &mut [u8], len: usize, source: impl Fn() -> Result<IpAddr>) -> Result<()> {
    header[2..4].copy_from_slice(&(len as u16).to_be_bytes());
    if header[4..6] == [0; 2] {
        let ident = random::next_u64() as u16 | 1;
        header[4..6].copy_from_slice(&ident.to_be_bytes());
    }
    if header[12..16] == [0; 4]
        && let IpAddr::V4(source) = source()?
    {
        header[12..16].copy_from_slice(&source.octets());
    }
    header[10..12].fill(0);
    let checksum = Sum::new().bytes(header).checksum();
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
    Ok(())
}

/// Calls `work` for the shard by which a packet with this header leaves, `within` loopback or not.
fn by_shard<R>(
    of: &NetStack,
    header: &RawHeader,
    within: Option<u16>,
    work: impl FnOnce(&mut inet::Stack, &mut Link) -> Answer<R>,
) -> Result<R> {
    let work = |stack: &mut inet::Stack, link: &mut Link| {
        let done = work(stack, link);
        after_send(link);
        done
    };
    let exit = || of.exit(0, header.src, header.dst);
    of.in_shard(within.unwrap_or_else(exit), work)
}
