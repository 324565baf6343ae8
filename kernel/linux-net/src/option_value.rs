//! The layouts of options' values.

use base::{Duration, VirtAddr};
use mm::user;
use sync::{Error, Result};
use vfs::socket::{
    Membership, MembershipKind, OptionValue, PacketStatistics, PeerCredentials, REPAIR_OPTIONS_MAX,
    RepairWindow, RingRequest, SocketMemory, TcpInfo, UmemRequest,
};
use xdp::offset;

use crate::membership;
use linux_abi::errno::Errno;

/// How a value lies in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Layout {
    /// A C `int`; at the IP level a single byte also does.
    Int,
    /// `struct linger`: on or off, seconds.
    Linger,
    /// `struct timeval`; zero for no limit.
    Timeval,
    /// `struct ucred`, read only.
    Credentials,
    /// An error number, read only.
    Errno,
    /// Characters, with or without a 0 at the end.
    Name,
    /// `struct tcp_info`, read only.
    TcpInfo,
    /// An array of `struct tcp_repair_opt`, write only.
    RepairOptions,
    /// `struct tcp_repair_window`.
    RepairWindow,
    /// `struct tpacket_req3`, or the first words of it, write only.
    Ring,
    /// `struct packet_mreq`, write only.
    Membership,
    /// `struct tpacket_stats` or `tpacket_stats_v3`, read only.
    PacketStatistics,
    /// A bit set or number of 64 bits, read only.
    Bits,
    /// SK_MEMINFO_VARS words of 32 bits, read only.
    Memory,
    /// `struct in_addr`, `ip_mreq` or `ip_mreqn`, of which the interface counts.
    Interface,
    /// `struct ip_mreq` or `ip_mreqn`.
    Group,
    /// `struct ipv6_mreq`.
    Group6,
    /// `struct group_req`.
    GroupRequest,
    /// `struct icmp6_filter`, or the first words of it.
    Types,
    /// `struct xdp_umem_reg`, or the first words of it, write only.
    Umem,
    /// `struct xdp_mmap_offsets`, read only.
    RingOffsets,
    /// `struct xdp_statistics`, read only.
    XdpStatistics,
}

/// Seconds that are no time limit any more: nanoseconds of them do not fit.
const SECONDS_END: u64 = u64::MAX / 1_000_000_000;

/// Reads a value of `len` bytes at `at`.
///
/// Errors: `Invalid` if it is too short, `NoSuchOption` for what can only be read.
pub fn decode(layout: Layout, at: VirtAddr, len: u32) -> Result<OptionValue> {
    match layout {
        Layout::Int => decode_int(at, len).map(OptionValue::Number),
        Layout::Linger if len >= 8 => {
            let [on, seconds] = user::read::<[i32; 2]>(at)?;
            let span = Duration::from_secs(u64::from(seconds.max(0).unsigned_abs()));
            Ok(OptionValue::Linger((on != 0).then_some(span)))
        }
        Layout::Timeval if len >= 16 => decode_timeout(at).map(OptionValue::Timeout),
        Layout::Name => decode_name(at, len),
        Layout::RepairOptions => decode_repair_options(at, len),
        Layout::RepairWindow => decode_repair_window(at, len),
        Layout::Ring => decode_ring(at, len).map(OptionValue::Ring),
        Layout::Membership if len >= 16 => decode_membership(at).map(OptionValue::Membership),
        Layout::Interface | Layout::Group | Layout::Group6 | Layout::GroupRequest => {
            membership::decode(layout, at, len).map(OptionValue::Group)
        }
        Layout::Types => decode_types(at, len),
        Layout::Umem => decode_umem(at, len).map(OptionValue::Umem),
        Layout::Linger | Layout::Timeval | Layout::Membership => Err(Error::Invalid),
        Layout::Credentials
        | Layout::Errno
        | Layout::TcpInfo
        | Layout::PacketStatistics
        | Layout::Memory
        | Layout::RingOffsets
        | Layout::XdpStatistics
        | Layout::Bits => Err(Error::NoSuchOption),
    }
}

/// A time before now means not to wait, one that is too far away to wait for ever.
fn decode_timeout(at: VirtAddr) -> Result<Option<Duration>> {
    let [seconds, micros] = user::read::<[i64; 2]>(at)?;
    if !(0..1_000_000).contains(&micros) {
        return Err(Error::OutOfDomain);
    }
    Ok(match u64::try_from(seconds) {
        Err(_) => Some(Duration::from_nanos(1)),
        Ok(SECONDS_END..) => None,
        Ok(seconds) => {
            let limit = Duration::new(seconds, micros as u32 * 1_000);
            (!limit.is_zero()).then_some(limit)
        }
    })
}

/// What is not a whole option at the end is passed over.
fn decode_repair_options(at: VirtAddr, len: u32) -> Result<OptionValue> {
    const BYTES: u32 = 8;
    let count = (len / BYTES) as usize;
    if count > REPAIR_OPTIONS_MAX {
        return Err(Error::Invalid);
    }
    let mut options = [(0, 0); REPAIR_OPTIONS_MAX];
    for (place, option) in (0..).zip(options.iter_mut().take(count)) {
        let [code, value] = user::read::<[u32; 2]>(at + place * u64::from(BYTES))?;
        *option = (code, value);
    }
    Ok(OptionValue::RepairOptions(options))
}

fn decode_repair_window(at: VirtAddr, len: u32) -> Result<OptionValue> {
    if len != 20 {
        return Err(Error::Invalid);
    }
    let [send_wl1, send, send_max, receive, receive_from] = user::read::<[u32; 5]>(at)?;
    Ok(OptionValue::RepairWindow(RepairWindow {
        send_wl1,
        send,
        send_max,
        receive,
        receive_from,
    }))
}

fn decode_int(at: VirtAddr, len: u32) -> Result<i32> {
    match len {
        0 => Err(Error::Invalid),
        1..4 => user::read::<u8>(at).map(i32::from),
        _ => user::read(at),
    }
}

/// What is not given passes.
fn decode_types(at: VirtAddr, len: u32) -> Result<OptionValue> {
    let mut words = [[0; 4]; 8];
    let bytes = words.as_flattened_mut();
    let given = bytes.len().min(len as usize);
    user::copy_in(at, bytes.get_mut(..given).unwrap_or_default())?;
    Ok(OptionValue::Types(words.map(u32::from_ne_bytes)))
}

fn decode_name(at: VirtAddr, len: u32) -> Result<OptionValue> {
    let mut name = [0; 16];
    let room = name.len() - 1;
    user::copy_in(
        at,
        name.get_mut(..room.min(len as usize)).unwrap_or_default(),
    )?;
    let end = name.iter().position(|byte| *byte == 0).unwrap_or(room);
    name.iter_mut().skip(end).for_each(|byte| *byte = 0);
    Ok(OptionValue::Name(name))
}

/// A request without the last three words is one for a ring of an older version.
fn decode_ring(at: VirtAddr, len: u32) -> Result<RingRequest> {
    let words = match len {
        0..16 => return Err(Error::Invalid),
        16..28 => {
            let [a, b, c, d] = user::read::<[u32; 4]>(at)?;
            [a, b, c, d, 0, 0, 0]
        }
        _ => user::read(at)?,
    };
    let [
        block_bytes,
        blocks,
        frame_bytes,
        frames,
        retire_ms,
        private_bytes,
        _features,
    ] = words;
    Ok(RingRequest {
        block_bytes,
        blocks,
        frame_bytes,
        frames,
        retire_ms,
        private_bytes,
        reserve_bytes: 0,
    })
}

/// A request without the last words is one of before there were flags.
fn decode_umem(at: VirtAddr, len: u32) -> Result<UmemRequest> {
    let (flags, metadata) = match len {
        0..24 => return Err(Error::Invalid),
        24..28 => (0, 0),
        28..32 => (user::read(at + 24)?, 0),
        _ => (user::read(at + 24)?, user::read::<u32>(at + 28)?),
    };
    if metadata != 0 {
        return Err(Error::Invalid);
    }
    let [address, bytes] = user::read(at)?;
    let [chunk_bytes, headroom] = user::read(at + 16)?;
    Ok(UmemRequest {
        address,
        bytes,
        chunk_bytes,
        headroom,
        flags,
    })
}

/// `struct packet_mreq`: behind the interface the kind, and in the same word how many bytes the
/// address behind has.
fn decode_membership(at: VirtAddr) -> Result<Membership> {
    let [interface, kind] = user::read::<[u32; 2]>(at)?;
    let kind = match kind as u16 {
        _ if kind >> 16 > 6 => return Err(Error::Invalid),
        0 => MembershipKind::Group(user::read(at + 8)?),
        2 => MembershipKind::AllGroups,
        1 => MembershipKind::Promiscuous,
        3 => MembershipKind::Unicast,
        _ => return Err(Error::Invalid),
    };
    Ok(Membership { interface, kind })
}

/// Bytes of `struct tcp_info` up to the last field we fill.
const TCP_INFO_BYTES: usize = 152;

/// A value's bytes.
pub struct Encoded {
    buffer: [u8; TCP_INFO_BYTES],
    len: usize,
}

impl Encoded {
    fn of(parts: &[&[u8]]) -> Self {
        let mut encoded = Self {
            buffer: [0; TCP_INFO_BYTES],
            len: 0,
        };
        for part in parts {
            encoded.put(encoded.len, part);
        }
        encoded
    }

    /// Stores `bytes` at `offset`; the value reaches at least to their end.
    fn put(&mut self, offset: usize, bytes: &[u8]) {
        let end = offset + bytes.len();
        if let Some(place) = self.buffer.get_mut(offset..end) {
            place.copy_from_slice(bytes);
            self.len = self.len.max(end);
        }
    }

    /// The value.
    pub fn bytes(&self) -> &[u8] {
        self.buffer.get(..self.len).unwrap_or_default()
    }
}

/// A value as the program sees it.
pub fn encode(value: &OptionValue) -> Encoded {
    match value {
        OptionValue::Number(number) => Encoded::of(&[&number.to_ne_bytes()]),
        OptionValue::Linger(span) => {
            let seconds = span.map_or(0, |span| i32::try_from(span.as_secs()).unwrap_or(i32::MAX));
            let on = i32::from(span.is_some());
            Encoded::of(&[&on.to_ne_bytes(), &seconds.to_ne_bytes()])
        }
        OptionValue::Timeout(limit) => {
            let limit = limit.unwrap_or_default();
            let micros = u64::from(limit.subsec_micros());
            Encoded::of(&[&limit.as_secs().to_ne_bytes(), &micros.to_ne_bytes()])
        }
        OptionValue::Credentials(PeerCredentials { pid, uid, gid }) => {
            Encoded::of(&[&pid.to_ne_bytes(), &uid.to_ne_bytes(), &gid.to_ne_bytes()])
        }
        OptionValue::PendingError(error) => {
            let number = error.map_or(0, |error| Errno::from(error).number());
            Encoded::of(&[&i32::from(number).to_ne_bytes()])
        }
        OptionValue::Name(name) => Encoded::of(&[name]),
        OptionValue::Device(None) => Encoded::of(&[]),
        OptionValue::Device(Some(name)) => Encoded::of(&[name.as_bytes(), &[0]]),
        OptionValue::Tcp(info) => encode_tcp(info),
        OptionValue::Cookie(number) => Encoded::of(&[&number.to_ne_bytes()]),
        OptionValue::Bits(bits) => Encoded::of(&[&bits.to_ne_bytes()]),
        OptionValue::PacketStatistics(statistics) => encode_statistics(statistics),
        OptionValue::Types(types) => Encoded::of(&[types.map(u32::to_ne_bytes).as_flattened()]),
        OptionValue::Memory(memory) => encode_memory(memory),
        OptionValue::Address(address) => Encoded::of(&[&address.octets()]),
        OptionValue::RingOffsets => encode_offsets(),
        OptionValue::XdpStatistics(told) => {
            Encoded::of(&[told.words().map(u64::to_ne_bytes).as_flattened()])
        }
        OptionValue::RepairWindow(window) => encode_repair_window(window),
        // These are told, not asked for.
        OptionValue::RepairOptions(_)
        | OptionValue::Umem(_)
        | OptionValue::Ring(_)
        | OptionValue::Membership(_)
        | OptionValue::Group(_) => Encoded::of(&[]),
    }
}

fn encode_repair_window(window: &RepairWindow) -> Encoded {
    let &RepairWindow {
        send_wl1,
        send,
        send_max,
        receive,
        receive_from,
    } = window;
    let words = [send_wl1, send, send_max, receive, receive_from];
    Encoded::of(&[words.map(u32::to_ne_bytes).as_flattened()])
}

/// The words of SK_MEMINFO_*: we have no memory that is promised or waits elsewhere.
fn encode_memory(memory: &SocketMemory) -> Encoded {
    let &SocketMemory {
        received,
        receive_buffer,
        sending,
        send_buffer,
        drops,
    } = memory;
    let words = [
        received,
        receive_buffer,
        sending,
        send_buffer,
        0,
        sending,
        0,
        0,
        drops,
    ];
    Encoded::of(&[words.map(u32::to_ne_bytes).as_flattened()])
}

/// The rings of rx, tx, fill and completion lie alike.
fn encode_offsets() -> Encoded {
    let ring = [
        offset::PRODUCER,
        offset::CONSUMER,
        offset::ENTRIES,
        offset::FLAGS,
    ];
    let ring = ring.map(|at| (at as u64).to_ne_bytes());
    let ring = ring.as_flattened();
    Encoded::of(&[ring, ring, ring, ring])
}

fn encode_statistics(statistics: &PacketStatistics) -> Encoded {
    let PacketStatistics {
        packets,
        drops,
        freezes,
    } = statistics;
    let words = [packets.to_ne_bytes(), drops.to_ne_bytes()];
    match freezes {
        None => Encoded::of(&[words.as_flattened()]),
        Some(freezes) => Encoded::of(&[words.as_flattened(), &freezes.to_ne_bytes()]),
    }
}

/// TCPI_OPT_TIMESTAMPS, TCPI_OPT_SACK, TCPI_OPT_WSCALE.
fn agreed_options(info: &TcpInfo) -> u8 {
    let has_scale = info.window_scales != (0, 0);
    u8::from(info.has_timestamps) | u8::from(info.has_sack) << 1 | u8::from(has_scale) << 2
}

/// `struct tcp_info` of include/uapi/linux/tcp.h: eight bytes, 24 words of 32 bits, four of
/// 64, four of 32.
fn encode_tcp(info: &TcpInfo) -> Encoded {
    const WORDS: usize = 8;
    const BYTES_ACKED: usize = 120;
    const BYTES_RECEIVED: usize = 128;
    const NOT_SENT_BYTES: usize = 144;
    let words = [
        (0, info.rto_us),
        (2, info.send_mss),
        (3, info.receive_mss),
        (4, info.unacked),
        (5, info.selectively_acked),
        (15, info.rtt_us),
        (16, info.rtt_variation_us),
        (17, info.slow_start_threshold),
        (18, info.congestion_window),
        (23, info.total_retransmits),
    ];
    let mut encoded = Encoded::of(&[&[0; TCP_INFO_BYTES]]);
    encoded.put(0, &[info.state]);
    encoded.put(2, &[info.retransmits]);
    encoded.put(5, &[agreed_options(info)]);
    let (send, receive) = info.window_scales;
    encoded.put(6, &[send & 15 | receive << 4]);
    for (index, word) in words {
        encoded.put(WORDS + index * 4, &word.to_ne_bytes());
    }
    encoded.put(BYTES_ACKED, &info.bytes_acked.to_ne_bytes());
    encoded.put(BYTES_RECEIVED, &info.bytes_received.to_ne_bytes());
    encoded.put(NOT_SENT_BYTES, &info.not_sent_bytes.to_ne_bytes());
    encoded
}
