//! Control messages: what travels beside the bytes.
//!
//! A buffer of them holds, each at a multiple of eight, a `struct cmsghdr` (64 bits of
//! length, 32 bits each of level and type) and its data.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use base::VirtAddr;
use cred::Capability;
use linux_raw_sys::general::O_CLOEXEC;
use linux_raw_sys::net::{AF_INET, AF_INET6};
use mach::mem::fallible::{self, TryPush};
use mm::user;
use sync::{Error, Result};
use vfs::file::OpenFile;
use vfs::socket::{
    AncillaryData, Auxiliary, Control, ExtendedError, Family, HeaderByte, PacketInfo,
    PeerCredentials, ReceivedFlags, StampUnit,
};

use crate::address::{encode_inet, encode_inet6};
use linux_abi::call::Call;
use linux_abi::errno::Errno;

const SOL_SOCKET: i32 = 1;
const SOL_IP: i32 = 0;
const SOL_IPV6: i32 = 41;
const SOL_UDP: i32 = 17;
const SCM_RIGHTS: i32 = 1;
const SCM_CREDENTIALS: i32 = 2;
const IP_PKTINFO: i32 = 8;
const IPV6_PKTINFO: i32 = 50;
const IP_TOS: i32 = 1;
const IP_TTL: i32 = 2;
const IPV6_HOPLIMIT: i32 = 52;
const IPV6_TCLASS: i32 = 67;
const IP_ORIGDSTADDR: i32 = 20;
const IPV6_ORIGDSTADDR: i32 = 74;
const SO_RXQ_OVFL: i32 = 40;
const UDP_SEGMENT: i32 = 103;
const UDP_GRO: i32 = 104;
const IP_RECVERR: i32 = 11;
const IPV6_RECVERR: i32 = 25;
const SCM_TIMESTAMP: i32 = 29;
const SCM_TIMESTAMPNS: i32 = 35;
const SOL_PACKET: i32 = 263;
const PACKET_AUXDATA: i32 = 8;

/// Bytes of a `struct cmsghdr`.
const HEADER_BYTES: usize = 16;
/// Longest buffer that a program may give (net.core.optmem_max).
const CONTROL_BYTES_MAX: u64 = 20_480;
/// Descriptors that one message may carry (SCM_MAX_FD).
const FILES_MAX: usize = 253;

/// Reads what a program wants to send.
///
/// Errors: `Invalid` for a bad layout or a kind unknown to us, `BadFile`, `NoBuffers`.
pub fn read(call: &Call<'_>, at: VirtAddr, len: u64) -> Result<Control> {
    let mut control = Control::default();
    if len == 0 {
        return Ok(control);
    }
    if len > CONTROL_BYTES_MAX {
        return Err(Error::NoBuffers);
    }
    let mut buffer = fallible::zeroed(len as usize)?;
    user::copy_in(at, &mut buffer)?;
    let mut rest = buffer.as_slice();
    while let Some((header, after)) = rest.split_first_chunk::<HEADER_BYTES>() {
        let [len, kind] = words(header);
        let (level, kind) = (kind as u32 as i32, (kind >> 32) as i32);
        let data_len = usize::try_from(len)
            .ok()
            .and_then(|len| len.checked_sub(HEADER_BYTES));
        let data = data_len
            .and_then(|len| after.get(..len))
            .ok_or(Error::Invalid)?;
        take(call, &mut control, (level, kind), data)?;
        let next = HEADER_BYTES + data.len().next_multiple_of(8);
        rest = rest.get(next..).unwrap_or_default();
    }
    Ok(control)
}

fn words(header: &[u8; HEADER_BYTES]) -> [u64; 2] {
    let bits = u128::from_ne_bytes(*header);
    [bits as u64, (bits >> 64) as u64]
}

fn take(call: &Call<'_>, control: &mut Control, kind: (i32, i32), data: &[u8]) -> Result<()> {
    match kind {
        (SOL_SOCKET, SCM_RIGHTS) => take_files(call, &mut control.files, data),
        (SOL_SOCKET, SCM_CREDENTIALS) => {
            control.credentials = Some(checked_credentials(call, data)?);
            Ok(())
        }
        (SOL_IP, IP_PKTINFO) => {
            control.packet_info = Some(packet_info(data)?);
            Ok(())
        }
        (SOL_IPV6, IPV6_PKTINFO) => {
            control.packet_info = Some(packet_info6(data)?);
            Ok(())
        }
        (SOL_IP, IP_TTL) => header_byte(data, HeaderByte::V4, &mut control.hop_limit),
        (SOL_IPV6, IPV6_HOPLIMIT) => header_byte(data, HeaderByte::V6, &mut control.hop_limit),
        (SOL_IP, IP_TOS) => header_byte(data, HeaderByte::V4, &mut control.traffic_class),
        (SOL_IPV6, IPV6_TCLASS) => header_byte(data, HeaderByte::V6, &mut control.traffic_class),
        (SOL_UDP, UDP_SEGMENT) => {
            let size = data.first_chunk::<2>().ok_or(Error::Invalid)?;
            control.segment_bytes = Some(u16::from_ne_bytes(*size));
            Ok(())
        }
        _ => Err(Error::Invalid),
    }
}

fn take_files(call: &Call<'_>, files: &mut Vec<Arc<OpenFile>>, data: &[u8]) -> Result<()> {
    let table = call.thread.files.get();
    for number in data.as_chunks::<4>().0 {
        if files.len() == FILES_MAX {
            return Err(Error::Invalid);
        }
        let open = table.get_any(u32::from_ne_bytes(*number))?;
        if !open.file.may_travel() {
            return Err(Error::Invalid);
        }
        files.try_push(open)?;
    }
    Ok(())
}

/// Who a program says it is: itself, unless it may lie.
fn checked_credentials(call: &Call<'_>, data: &[u8]) -> Result<PeerCredentials> {
    let (pid, rest) = data.split_first_chunk::<4>().ok_or(Error::Invalid)?;
    let (uid, rest) = rest.split_first_chunk::<4>().ok_or(Error::Invalid)?;
    let gid = rest.first_chunk::<4>().ok_or(Error::Invalid)?;
    let [pid, uid, gid] = [pid, uid, gid].map(|bytes| u32::from_ne_bytes(*bytes));
    let own = call.thread.credentials.get();
    let is_own_pid = pid == call.thread.process.id();
    if !is_own_pid {
        own.require(Capability::SysAdmin)?;
    }
    if !own.user.holds(uid) {
        own.require(Capability::Setuid)?;
    }
    if !own.group.holds(gid) {
        own.require(Capability::Setgid)?;
    }
    Ok(PeerCredentials { pid, uid, gid })
}

/// A C `int` or a byte; -1 leaves it to the socket.
fn header_byte(
    data: &[u8],
    of: fn(u8) -> HeaderByte,
    field: &mut Option<HeaderByte>,
) -> Result<()> {
    let number = match (data, data.first_chunk::<4>()) {
        ([byte], _) => i32::from(*byte),
        (_, Some(number)) => i32::from_ne_bytes(*number),
        _ => return Err(Error::Invalid),
    };
    *field = match number {
        -1 => None,
        number => Some(of(u8::try_from(number).map_err(|_| Error::Invalid)?)),
    };
    Ok(())
}

fn packet_info(data: &[u8]) -> Result<PacketInfo> {
    let (interface, rest) = data.split_first_chunk::<4>().ok_or(Error::Invalid)?;
    let local = rest.first_chunk::<4>().ok_or(Error::Invalid)?;
    Ok(PacketInfo {
        interface: u32::from_ne_bytes(*interface),
        local: IpAddr::V4(Ipv4Addr::from(*local)),
    })
}

fn packet_info6(data: &[u8]) -> Result<PacketInfo> {
    let (local, rest) = data.split_first_chunk::<16>().ok_or(Error::Invalid)?;
    let interface = rest.first_chunk::<4>().ok_or(Error::Invalid)?;
    Ok(PacketInfo {
        interface: u32::from_ne_bytes(*interface),
        local: IpAddr::V6(Ipv6Addr::from(*local)),
    })
}

/// A buffer that fills up with control messages.
struct Writer {
    bytes: Vec<u8>,
    room: usize,
    is_cut: bool,
}

impl Writer {
    /// Adds a message, cut where the room ends.
    fn push(&mut self, (level, kind): (i32, i32), data: &[u8]) {
        let left = self.room - self.bytes.len();
        let Some(room) = left.checked_sub(HEADER_BYTES) else {
            self.is_cut = true;
            return;
        };
        let shown = data.get(..data.len().min(room)).unwrap_or_default();
        self.is_cut |= shown.len() < data.len();
        self.bytes
            .extend_from_slice(&(HEADER_BYTES as u64 + shown.len() as u64).to_ne_bytes());
        self.bytes.extend_from_slice(&level.to_ne_bytes());
        self.bytes.extend_from_slice(&kind.to_ne_bytes());
        self.bytes.extend_from_slice(shown);
        let padded = self.bytes.len().next_multiple_of(8).min(self.room);
        self.bytes.resize(padded, 0);
    }

    /// How many descriptors fit now.
    fn room_for_files(&self) -> usize {
        (self.room - self.bytes.len()).saturating_sub(HEADER_BYTES) / 4
    }
}

/// Stores what was received at `to`, `room` bytes; returns bytes used and what was cut.
///
/// Descriptors that do not fit are closed.
pub fn write(
    call: &Call<'_>,
    control: Control,
    to: VirtAddr,
    room: u64,
    close_on_exec: bool,
) -> Result<(u64, ReceivedFlags)> {
    if control.is_empty() {
        return Ok((0, ReceivedFlags::empty()));
    }
    let room = room.min(CONTROL_BYTES_MAX) as usize;
    let mut out = Writer {
        bytes: Vec::new(),
        room,
        is_cut: false,
    };
    if let Some(info) = control.packet_info {
        push_packet_info(&mut out, info);
    }
    if let Some(hops) = control.hop_limit {
        let number = i32::from(hops.value()).to_ne_bytes();
        match hops {
            HeaderByte::V4(_) => out.push((SOL_IP, IP_TTL), &number),
            HeaderByte::V6(_) => out.push((SOL_IPV6, IPV6_HOPLIMIT), &number),
        }
    }
    match control.traffic_class {
        // Here Linux shows a byte and there a number.
        Some(HeaderByte::V4(tos)) => out.push((SOL_IP, IP_TOS), &[tos]),
        Some(HeaderByte::V6(class)) => {
            out.push((SOL_IPV6, IPV6_TCLASS), &i32::from(class).to_ne_bytes());
        }
        None => {}
    }
    if let Some(destination) = control.original_destination {
        match destination {
            SocketAddr::V4(name) => out.push((SOL_IP, IP_ORIGDSTADDR), &encode_inet(&name)),
            SocketAddr::V6(name) => out.push((SOL_IPV6, IPV6_ORIGDSTADDR), &encode_inet6(&name)),
        }
    }
    if let Some(drops) = control.drops {
        out.push((SOL_SOCKET, SO_RXQ_OVFL), &drops.get().to_ne_bytes());
    }
    if let Some(size) = control.segment_bytes {
        out.push((SOL_UDP, UDP_GRO), &i32::from(size).to_ne_bytes());
    }
    if let Some(PeerCredentials { pid, uid, gid }) = control.credentials {
        let data = [pid, uid, gid].map(u32::to_ne_bytes);
        out.push((SOL_SOCKET, SCM_CREDENTIALS), data.as_flattened());
    }
    if let Some(told) = control.ancillary {
        push_ancillary(&mut out, &told);
    }
    if let Some(told) = control.error {
        push_extended_error(&mut out, &told);
    }
    if !control.files.is_empty() {
        push_files(call, &mut out, control.files, close_on_exec);
    }
    user::copy_out(&out.bytes, to)?;
    let cut = if out.is_cut {
        ReceivedFlags::CTRUNC
    } else {
        ReceivedFlags::empty()
    };
    Ok((out.bytes.len() as u64, cut))
}

/// `struct sock_extended_err`, and a `sockaddr_in` or `sockaddr_in6` of who offended, empty if
/// nobody did.
fn push_extended_error(out: &mut Writer, told: &ExtendedError) {
    let mut data = [0; 16 + 28];
    let number = told.error.map_or(0, |error| Errno::from(error).number());
    data[..4].copy_from_slice(&u32::from(number).to_ne_bytes());
    data[4..7].copy_from_slice(&[told.origin as u8, told.kind, told.code]);
    data[8..12].copy_from_slice(&told.info.to_ne_bytes());
    data[12..16].copy_from_slice(&told.data.to_ne_bytes());
    match told.offender {
        Some(IpAddr::V4(offender)) => {
            data[16..18].copy_from_slice(&(AF_INET as u16).to_ne_bytes());
            data[20..24].copy_from_slice(&offender.octets());
        }
        Some(IpAddr::V6(offender)) => {
            data[16..18].copy_from_slice(&(AF_INET6 as u16).to_ne_bytes());
            data[24..40].copy_from_slice(&offender.octets());
        }
        None => {}
    }
    match told.family {
        Family::Inet6 => out.push((SOL_IPV6, IPV6_RECVERR), &data),
        _ => out.push((SOL_IP, IP_RECVERR), &data[..16 + 16]),
    }
}

fn push_ancillary(out: &mut Writer, told: &AncillaryData) {
    if let Some((stamp, unit)) = told.stamp {
        let (kind, part) = match unit {
            StampUnit::Microseconds => (SCM_TIMESTAMP, stamp.subsec_micros()),
            StampUnit::Nanoseconds => (SCM_TIMESTAMPNS, stamp.subsec_nanos()),
        };
        let words = [stamp.as_secs(), u64::from(part)].map(u64::to_ne_bytes);
        out.push((SOL_SOCKET, kind), words.as_flattened());
    }
    if let Some(auxiliary) = told.auxiliary {
        push_auxiliary(out, auxiliary);
    }
}

/// `struct tpacket_auxdata`.
fn push_auxiliary(out: &mut Writer, told: Auxiliary) {
    let words = [told.status, told.len, told.kept].map(u32::to_ne_bytes);
    // The link header starts where the packet does.
    let halves = [0, told.network, told.tag, told.tag_type].map(u16::to_ne_bytes);
    let mut data = [0; 20];
    let (front, back) = data.split_at_mut(12);
    front.copy_from_slice(words.as_flattened());
    back.copy_from_slice(halves.as_flattened());
    out.push((SOL_PACKET, PACKET_AUXDATA), &data);
}

fn push_packet_info(out: &mut Writer, info: PacketInfo) {
    match info.local {
        IpAddr::V4(local) => {
            let local = local.octets();
            let data = [info.interface.to_ne_bytes(), local, local];
            out.push((SOL_IP, IP_PKTINFO), data.as_flattened());
        }
        IpAddr::V6(local) => {
            let mut data = [0; 20];
            let (address, interface) = data.split_at_mut(16);
            address.copy_from_slice(&local.octets());
            interface.copy_from_slice(&info.interface.to_ne_bytes());
            out.push((SOL_IPV6, IPV6_PKTINFO), &data);
        }
    }
}

fn push_files(call: &Call<'_>, out: &mut Writer, files: Vec<Arc<OpenFile>>, close_on_exec: bool) {
    let count = files.len();
    let flags = if close_on_exec { O_CLOEXEC } else { 0 };
    let mut numbers = Vec::new();
    for open in files.into_iter().take(out.room_for_files()) {
        match call.new_fd(open, flags) {
            Ok(fd) => numbers.extend_from_slice(&(fd as i32).to_ne_bytes()),
            Err(_) => break,
        }
    }
    out.is_cut |= numbers.len() < count * 4;
    if !numbers.is_empty() {
        out.push((SOL_SOCKET, SCM_RIGHTS), &numbers);
    }
}
