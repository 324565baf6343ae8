//! getsockopt, setsockopt: which option has which number, and how its value lies in
//! memory.

use linux_raw_sys::general::{__NR_getsockopt, __NR_setsockopt};
use mm::user;
use sync::{Error, Result};
use vfs::socket::{Family, OptionName as Name, OptionValue, Socket};

use crate::address::family_number;
use crate::create::type_number;
use crate::filter;
use crate::option_value::{Layout, decode, encode};
use crate::peer;
use crate::privilege;
use crate::socket_of;
use linux_abi::call::{Arg, Call, Entry, Outcome};
use linux_abi::errno::Errno;
use linux_abi::missing;

const ARGS: &[Arg] = &[Arg::Fd, Arg::Int, Arg::Int, Arg::Address, Arg::Size];

pub const CALLS: &[Entry] = &[
    Entry {
        number: __NR_getsockopt,
        name: "getsockopt",
        args: ARGS,
        handler: getsockopt,
    },
    Entry {
        number: __NR_setsockopt,
        name: "setsockopt",
        args: ARGS,
        handler: setsockopt,
    },
];

const SOL_IP: u32 = 0;
const SOL_SOCKET: u32 = 1;
const SOL_TCP: u32 = 6;
const SOL_UDP: u32 = 17;
const SOL_IPV6: u32 = 41;
const SOL_ICMPV6: u32 = 58;
const SOL_PACKET: u32 = 263;
const SOL_NETLINK: u32 = 270;
const SOL_XDP: u32 = 283;
const SOL_RAW: u32 = 255;

/// Options that `kernel/linux` answers itself: SO_TYPE, SO_SNDLOWAT, SO_PROTOCOL,
/// SO_INCOMING_NAPI_ID, SO_DOMAIN.
const SO_TYPE: u32 = 3;
const SO_SNDLOWAT: u32 = 19;
const SO_PROTOCOL: u32 = 38;
const SO_DOMAIN: u32 = 39;
const SO_INCOMING_NAPI_ID: u32 = 56;
/// Of IPv4: what packets carry beside their headers, which is nothing here.
const IP_OPTIONS: u32 = 4;

/// Asked and answered in place: PACKET_HDRLEN, and the sizes of `struct tpacket2_hdr` and
/// `tpacket3_hdr`.
const PACKET_HDRLEN: u32 = 11;
const TPACKET_V2: u32 = 1;
const TPACKET_V3: u32 = 2;
const TPACKET2_HEADER_BYTES: i32 = 32;
const TPACKET3_HEADER_BYTES: i32 = 48;

/// SO_COOKIE and SO_BINDTODEVICE are told whole or not at all; of a name, what the longest takes
/// (IFNAMSIZ).
const COOKIE_BYTES: u32 = 8;
const DEVICE_BYTES: u32 = 16;
/// So is `struct tcp_repair_window`.
const REPAIR_WINDOW_BYTES: u32 = 20;
/// So are offsets of rings (`struct xdp_mmap_offsets`); of AF_XDP's statistics, what there was first.
const RING_OFFSETS_BYTES: u32 = 128;
const XDP_STATISTICS_BYTES: u32 = 24;

/// One option: its name, and its value's layout.
type Row = (Name, Layout);

fn lookup(level: u32, number: u32) -> Option<Row> {
    match level {
        SOL_SOCKET => socket_level(number),
        SOL_IP => ip_level(number),
        SOL_IPV6 => ipv6_level(number),
        SOL_TCP => tcp_level(number),
        SOL_PACKET => packet_level(number),
        SOL_NETLINK => netlink_level(number),
        SOL_XDP => xdp_level(number),
        SOL_RAW if number == 1 => Some((Name::IcmpFilter, Layout::Int)),
        SOL_RAW if number == 7 => Some((Name::V6Checksum, Layout::Int)),
        SOL_ICMPV6 if number == 1 => Some((Name::Icmp6Filter, Layout::Types)),
        SOL_UDP if number == 1 => Some((Name::UdpCork, Layout::Int)),
        SOL_UDP if number == 103 => Some((Name::UdpSegment, Layout::Int)),
        SOL_UDP if number == 104 => Some((Name::UdpJoin, Layout::Int)),
        _ => None,
    }
}

/// The numbers are those of include/uapi/asm-generic/socket.h.
fn socket_level(number: u32) -> Option<Row> {
    let name = match number {
        1 => Name::Debug,
        2 => Name::ReuseAddress,
        4 => return Some((Name::Error, Layout::Errno)),
        5 => Name::DontRoute,
        6 => Name::Broadcast,
        7 => Name::SendBuffer,
        8 => Name::ReceiveBuffer,
        9 => Name::KeepAlive,
        10 => Name::OutOfBandInline,
        11 => Name::NoCheck,
        12 => Name::Priority,
        13 => return Some((Name::Linger, Layout::Linger)),
        15 => Name::ReusePort,
        16 => Name::PassCredentials,
        17 => return Some((Name::PeerCredentials, Layout::Credentials)),
        18 => Name::ReceiveLowWater,
        20 | 66 => return Some((Name::ReceiveTimeout, Layout::Timeval)),
        21 | 67 => return Some((Name::SendTimeout, Layout::Timeval)),
        25 => return Some((Name::BindToDevice, Layout::Name)),
        29 | 63 => Name::Timestamp,
        30 => Name::Listening,
        32 => Name::SendBufferForced,
        33 => Name::ReceiveBufferForced,
        35 | 64 => Name::TimestampNanos,
        36 => Name::Mark,
        42 => Name::PeekOffset,
        40 => Name::ReceiveQueueOverflow,
        46 => Name::BusyPoll,
        49 => Name::IncomingCpu,
        55 => return Some((Name::MemoryInfo, Layout::Memory)),
        57 => return Some((Name::Cookie, Layout::Bits)),
        60 => Name::ZeroCopy,
        62 => Name::BindToInterface,
        _ => return None,
    };
    Some((name, Layout::Int))
}

/// include/uapi/linux/in.h.
fn ip_level(number: u32) -> Option<Row> {
    let name = match number {
        1 => Name::TypeOfService,
        2 => Name::TimeToLive,
        3 => Name::HeaderIncluded,
        8 => Name::PacketInfo,
        10 => Name::MtuDiscovery,
        11 => Name::ReceiveErrors,
        12 => Name::ReceiveTimeToLive,
        13 => Name::ReceiveTypeOfService,
        14 => Name::Mtu,
        15 => Name::FreeBind,
        19 => Name::Transparent,
        20 => Name::ReceiveOriginalDestination,
        21 => Name::MinTimeToLive,
        24 => Name::BindAddressNoPort,
        32 => return Some((Name::MulticastInterface, Layout::Interface)),
        33 => Name::MulticastTimeToLive,
        34 => Name::MulticastLoop,
        35 => return Some((Name::JoinGroup, Layout::Group)),
        36 => return Some((Name::LeaveGroup, Layout::Group)),
        42 => return Some((Name::JoinGroup, Layout::GroupRequest)),
        45 => return Some((Name::LeaveGroup, Layout::GroupRequest)),
        _ => return None,
    };
    Some((name, Layout::Int))
}

/// include/uapi/linux/in6.h.
fn ipv6_level(number: u32) -> Option<Row> {
    let name = match number {
        7 => Name::V6Checksum,
        16 => Name::V6HopLimit,
        17 => Name::V6MulticastInterface,
        18 => Name::V6MulticastHops,
        19 => Name::V6MulticastLoop,
        20 => return Some((Name::V6JoinGroup, Layout::Group6)),
        21 => return Some((Name::V6LeaveGroup, Layout::Group6)),
        23 => Name::V6MtuDiscovery,
        24 => Name::V6Mtu,
        25 => Name::V6ReceiveErrors,
        26 => Name::V6Only,
        36 => Name::V6HeaderIncluded,
        42 => return Some((Name::V6JoinGroup, Layout::GroupRequest)),
        45 => return Some((Name::V6LeaveGroup, Layout::GroupRequest)),
        49 => Name::V6PacketInfo,
        51 => Name::V6ReceiveHopLimit,
        62 => Name::V6DontFragment,
        66 => Name::V6ReceiveTrafficClass,
        67 => Name::V6TrafficClass,
        73 => Name::V6MinHopCount,
        74 => Name::V6ReceiveOriginalDestination,
        _ => return None,
    };
    Some((name, Layout::Int))
}

/// include/uapi/linux/tcp.h.
fn tcp_level(number: u32) -> Option<Row> {
    let name = match number {
        1 => Name::NoDelay,
        2 => Name::MaxSegment,
        3 => Name::Cork,
        4 => Name::KeepIdle,
        5 => Name::KeepInterval,
        6 => Name::KeepCount,
        7 => Name::SynCount,
        8 => Name::FinTimeout,
        9 => Name::DeferAccept,
        10 => Name::WindowClamp,
        11 => return Some((Name::TcpInfo, Layout::TcpInfo)),
        12 => Name::QuickAck,
        13 => return Some((Name::Congestion, Layout::Name)),
        18 => Name::UserTimeout,
        19 => Name::Repair,
        20 => Name::RepairQueue,
        21 => Name::QueueSequence,
        22 => return Some((Name::RepairOptions, Layout::RepairOptions)),
        23 => Name::FastOpen,
        24 => Name::TcpClock,
        25 => Name::NotSentLowWater,
        29 => return Some((Name::RepairWindow, Layout::RepairWindow)),
        _ => return None,
    };
    Some((name, Layout::Int))
}

/// include/uapi/linux/if_packet.h.
fn packet_level(number: u32) -> Option<Row> {
    let name = match number {
        1 => return Some((Name::AddMembership, Layout::Membership)),
        2 => return Some((Name::DropMembership, Layout::Membership)),
        5 => return Some((Name::ReceiveRing, Layout::Ring)),
        6 => return Some((Name::PacketStatistics, Layout::PacketStatistics)),
        8 => Name::Auxdata,
        10 => Name::RingVersion,
        12 => Name::RingReserve,
        17 => Name::PacketTimestamp,
        23 => Name::IgnoreOutgoing,
        _ => return None,
    };
    Some((name, Layout::Int))
}

/// include/uapi/linux/netlink.h.
fn netlink_level(number: u32) -> Option<Row> {
    let name = match number {
        1 => Name::NetlinkJoin,
        2 => Name::NetlinkLeave,
        5 => Name::NetlinkNoOverruns,
        9 => return Some((Name::NetlinkGroups, Layout::Bits)),
        10 => Name::NetlinkCapAck,
        11 => Name::NetlinkExtendedAck,
        12 => Name::NetlinkStrict,
        _ => return None,
    };
    Some((name, Layout::Int))
}

/// Of our own (`docs/rings.md`), far from Linux's.
const XDP_NEW_FLOWS: u32 = 0x5301;
const XDP_FILTER: u32 = 0x5302;

/// include/uapi/linux/if_xdp.h.
fn xdp_level(number: u32) -> Option<Row> {
    let name = match number {
        1 => return Some((Name::RingOffsets, Layout::RingOffsets)),
        2 => Name::XdpReceiveRing,
        3 => Name::XdpSendRing,
        4 => return Some((Name::Umem, Layout::Umem)),
        5 => Name::FillRing,
        6 => Name::CompletionRing,
        7 => return Some((Name::XdpStatistics, Layout::XdpStatistics)),
        8 => Name::XdpOptions,
        XDP_NEW_FLOWS => Name::XdpNewFlows,
        XDP_FILTER => Name::XdpFilter,
        _ => return None,
    };
    Some((name, Layout::Int))
}

/// The option that a call names; one that we lack is counted.
fn option_of(call: &Call<'_>, what: &'static str) -> Result<Row> {
    let (level, number) = (call.uint(1), call.uint(2));
    lookup(level, number).ok_or_else(|| missing_option(what, level, number))
}

fn missing_option(what: &'static str, level: u32, number: u32) -> Error {
    missing::count_option(what, u64::from(level) << 32 | u64::from(number));
    Error::NoSuchOption
}

fn setsockopt(call: Call<'_>) -> Outcome {
    let open = call.file(0)?;
    let socket = socket_of(&open)?;
    if let Some(outcome) = filter::set(&call, socket) {
        return outcome;
    }
    check_level(socket, call.uint(1))?;
    // Linux refuses them as well, and programs ask for them on all that they open.
    if socket.family() == Family::Inet && call.uint(1) == SOL_IPV6 {
        return Err(Errno::ENOPROTOOPT);
    }
    let (name, layout) = option_of(&call, "setsockopt")?;
    let value = decode(layout, call.addr(3), call.uint(4))?;
    let is_for_inet = matches!(name, Name::ReusePort | Name::ZeroCopy);
    if is_for_inet && value.number()? != 0 && !is_inet(socket) {
        return Err(Errno::EOPNOTSUPP);
    }
    let which = (call.uint(1), call.uint(2));
    call.thread
        .credentials
        .with(|who| privilege::check(who, which, name, &value))?;
    let set = socket.set_option(name, value);
    if set == Err(Error::NoSuchOption) {
        missing_option("setsockopt", call.uint(1), call.uint(2));
    }
    Ok(set.map(|()| 0)?)
}

/// Whether the socket is IPv4's or IPv6's.
fn is_inet(socket: &dyn Socket) -> bool {
    matches!(socket.family(), Family::Inet | Family::Inet6)
}

/// Unix sockets have options of one level.
fn check_level(socket: &dyn Socket, level: u32) -> Result<()> {
    match socket.family() {
        Family::Unix if level != SOL_SOCKET => Err(Error::Unsupported),
        _ => Ok(()),
    }
}

/// The value of an option.
fn option(call: &Call<'_>, socket: &dyn Socket) -> Result<OptionValue> {
    let value = socket.option(option_of(call, "getsockopt")?.0)?;
    let least = match value {
        OptionValue::Cookie(_) => COOKIE_BYTES,
        OptionValue::Device(Some(_)) => DEVICE_BYTES,
        OptionValue::RepairWindow(_) => REPAIR_WINDOW_BYTES,
        OptionValue::RingOffsets => RING_OFFSETS_BYTES,
        OptionValue::XdpStatistics(_) => XDP_STATISTICS_BYTES,
        _ => 0,
    };
    match user::read::<u32>(call.addr(4))? < least {
        true => Err(Error::Invalid),
        false => Ok(value),
    }
}

fn getsockopt(call: Call<'_>) -> Outcome {
    let open = call.file(0)?;
    let socket = socket_of(&open)?;
    if (call.uint(1), call.uint(2)) == (SOL_PACKET, PACKET_HDRLEN) {
        return tell_header_bytes(&call);
    }
    if (call.uint(1), call.uint(2)) == (SOL_IP, IP_OPTIONS) && socket.family() == Family::Inet {
        return tell_no_options(&call);
    }
    let told = filter::tell(&call, socket).or_else(|| peer::tell(&call, socket));
    if let Some(outcome) = told {
        return outcome;
    }
    let (level, number) = (call.uint(1), call.uint(2));
    check_level(socket, level)?;
    let value = match identity(socket, level, number) {
        Some(number) => OptionValue::Number(number),
        // IPv4 looks at the level first.
        None if socket.family() == Family::Inet && level == SOL_IPV6 => {
            return Err(Errno::EOPNOTSUPP);
        }
        None => match filter::get(socket, level, number) {
            Some(value) => value?,
            None => option(&call, socket)?,
        },
    };
    tell(&call, &value)
}

/// The value in the program's memory is a ring's version, and becomes the size of its headers.
fn tell_header_bytes(call: &Call<'_>) -> Outcome {
    match user::read::<u32>(call.addr(3))? {
        TPACKET_V2 => tell(call, &OptionValue::Number(TPACKET2_HEADER_BYTES)),
        TPACKET_V3 => tell(call, &OptionValue::Number(TPACKET3_HEADER_BYTES)),
        _ => Err(Errno::EINVAL),
    }
}

/// Whoever lets somebody in asks whether the packets chose their way by themselves (`sshd`, tcp_wrappers).
fn tell_no_options(call: &Call<'_>) -> Outcome {
    match user::read::<i32>(call.addr(4))? {
        ..0 => Err(Errno::EINVAL),
        _ => Ok(user::write(call.addr(4), 0_u32).map(|()| 0)?),
    }
}

/// What a socket is; and what is the same for all: SO_SNDLOWAT, and that no queue of the card is known from which
/// its packets come (OpenJDK asks).
fn identity(socket: &dyn Socket, level: u32, number: u32) -> Option<i32> {
    match (level, number) {
        (SOL_SOCKET, SO_TYPE) => Some(type_number(socket.socket_type())),
        (SOL_SOCKET, SO_SNDLOWAT) => Some(1),
        (SOL_SOCKET, SO_INCOMING_NAPI_ID) => Some(0),
        (SOL_SOCKET, SO_PROTOCOL) => Some(i32::from(socket.protocol())),
        (SOL_SOCKET, SO_DOMAIN) => i32::try_from(family_number(socket.family())).ok(),
        _ => None,
    }
}

/// Stores a value as far as the program's room reaches, and its length.
fn tell(call: &Call<'_>, value: &OptionValue) -> Outcome {
    let room: i32 = user::read(call.addr(4))?;
    let Ok(room) = usize::try_from(room) else {
        return Err(Errno::EINVAL);
    };
    let encoded = encode(value);
    let bytes = encoded.bytes();
    let shown = bytes.get(..room).unwrap_or(bytes);
    user::copy_out(shown, call.addr(3))?;
    user::write(call.addr(4), shown.len() as u32)?;
    Ok(0)
}
