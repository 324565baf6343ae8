//! Control messages (cmsg(3)): what is told of a datagram beside its bytes, and what it has of its own when it is sent.
//!
//! A buffer of them holds, each at a multiple of eight, a `struct cmsghdr` (64 bits of length, 32 each of level and
//! kind) and its data. Which ones a socket's receiver wants is kept by the kernel's socket behind the number;
//! [`Wanted`] is a copy of that for each datagram.

use std::net::{IpAddr, Ipv4Addr};

use bitflags::bitflags;
use inet::{Endpoint, SendOptions};

use crate::errno::{Errno, Result};
use crate::failure::ExtendedError;

/// Bytes of a `struct cmsghdr`.
const HEADER_BYTES: usize = 16;
/// `UDP_SEGMENT`, which the C library's crate has not for all targets.
pub(crate) const UDP_SEGMENT: i32 = 103;

/// What is told of a datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Heard {
    /// Who sent it.
    pub from: Endpoint,
    /// The name it was sent to.
    pub to: Endpoint,
    /// Bytes that it had, whether there was room for them or not.
    pub len: usize,
    /// Hops that it might still have made.
    pub hop_limit: u8,
    /// DSCP and ECN bits.
    pub tos: u8,
    /// How many found no room before it.
    pub drops: u32,
}

bitflags! {
    /// What the receiver of datagrams wants to be told.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct Wanted: u32 {
        /// Which address it was sent to (IP_PKTINFO).
        const PACKET_INFO = 1;
        /// The hops that were left (IP_RECVTTL).
        const HOP_LIMIT = 2;
        /// The type of service (IP_RECVTOS).
        const TYPE_OF_SERVICE = 4;
        /// The name it was sent to (IP_RECVORIGDSTADDR).
        const DESTINATION = 8;
        /// How many found no room (SO_RXQ_OVFL).
        const DROPS = 16;
    }
}

impl Wanted {
    /// Level and name of the option that asks for one of them.
    pub const OPTIONS: [(Self, i32, i32); 5] = [
        (Self::PACKET_INFO, libc::IPPROTO_IP, libc::IP_PKTINFO),
        (Self::HOP_LIMIT, libc::IPPROTO_IP, libc::IP_RECVTTL),
        (Self::TYPE_OF_SERVICE, libc::IPPROTO_IP, libc::IP_RECVTOS),
        (
            Self::DESTINATION,
            libc::IPPROTO_IP,
            libc::IP_RECVORIGDSTADDR,
        ),
        (Self::DROPS, libc::SOL_SOCKET, libc::SO_RXQ_OVFL),
    ];

    /// Whether the option is one of these.
    pub(crate) fn has_option(level: i32, name: i32) -> bool {
        Self::OPTIONS
            .iter()
            .any(|option| (option.1, option.2) == (level, name))
    }
}

/// Control messages as they lie in memory, as far as there was room.
#[derive(Debug, Default)]
pub struct Messages {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Whether something was cut off (MSG_CTRUNC).
    pub is_cut: bool,
    room: usize,
}

impl Messages {
    /// What is `wanted` of a datagram, that came by the interface of this number.
    pub fn of(heard: &Heard, wanted: Wanted, interface: u32, room: usize) -> Self {
        let mut all = Self {
            room,
            ..Self::default()
        };
        let IpAddr::V4(local) = heard.to.addr else {
            return all;
        };
        if wanted.contains(Wanted::PACKET_INFO) {
            let info = [interface.to_ne_bytes(), local.octets(), local.octets()];
            all.push((libc::IPPROTO_IP, libc::IP_PKTINFO), info.as_flattened());
        }
        if wanted.contains(Wanted::HOP_LIMIT) {
            let hops = i32::from(heard.hop_limit).to_ne_bytes();
            all.push((libc::IPPROTO_IP, libc::IP_TTL), &hops);
        }
        if wanted.contains(Wanted::TYPE_OF_SERVICE) {
            all.push((libc::IPPROTO_IP, libc::IP_TOS), &[heard.tos]);
        }
        if wanted.contains(Wanted::DESTINATION) {
            let name = socket_name(local, heard.to.port);
            all.push((libc::IPPROTO_IP, libc::IP_ORIGDSTADDR), &name);
        }
        if wanted.contains(Wanted::DROPS) && heard.drops != 0 {
            let drops = heard.drops.to_ne_bytes();
            all.push((libc::SOL_SOCKET, libc::SO_RXQ_OVFL), &drops);
        }
        all
    }

    /// The same of a datagram that did not arrive: of the message that told of it, and why.
    pub fn of_failure(
        (heard, error): (&Heard, &ExtendedError),
        wanted: Wanted,
        interface: u32,
        room: usize,
    ) -> Self {
        let wanted = match error.is_from_network {
            true => wanted,
            false => Wanted::empty(),
        };
        let mut all = Self::of(heard, wanted, interface, room);
        all.push((libc::IPPROTO_IP, libc::IP_RECVERR), &error.bytes);
        all
    }

    /// Adds a message, cut where the room ends.
    fn push(&mut self, (level, kind): (i32, i32), data: &[u8]) {
        let left = self.room - self.bytes.len();
        let Some(room) = left.checked_sub(HEADER_BYTES) else {
            self.is_cut = true;
            return;
        };
        let shown = &data[..data.len().min(room)];
        self.is_cut |= shown.len() < data.len();
        let len = (HEADER_BYTES + shown.len()) as u64;
        self.bytes.extend(len.to_ne_bytes());
        self.bytes.extend(level.to_ne_bytes());
        self.bytes.extend(kind.to_ne_bytes());
        self.bytes.extend(shown);
        let padded = self.bytes.len().next_multiple_of(8).min(self.room);
        self.bytes.resize(padded, 0);
    }
}

/// `struct sockaddr_in`.
pub(crate) fn socket_name(host: Ipv4Addr, port: u16) -> [u8; 16] {
    let mut name = [0; 16];
    name[..2].copy_from_slice(&(libc::AF_INET as u16).to_ne_bytes());
    name[2..4].copy_from_slice(&port.to_be_bytes());
    name[4..8].copy_from_slice(&host.octets());
    name
}

/// What a datagram that is sent has of its own.
///
/// Errors: `INVALID` for a bad layout, or for what is not known.
pub fn own_of(mut bytes: &[u8]) -> Result<SendOptions> {
    let mut own = SendOptions::default();
    while let Some((header, after)) = bytes.split_first_chunk::<HEADER_BYTES>() {
        let [len, kind] = words(header);
        let data = usize::try_from(len)
            .ok()
            .and_then(|len| len.checked_sub(HEADER_BYTES));
        let data = data
            .and_then(|len| after.get(..len))
            .ok_or(Errno::INVALID)?;
        take(&mut own, (kind as u32 as i32, (kind >> 32) as i32), data)?;
        bytes = after
            .get(data.len().next_multiple_of(8)..)
            .unwrap_or_default();
    }
    Ok(own)
}

fn words(header: &[u8; HEADER_BYTES]) -> [u64; 2] {
    let bits = u128::from_ne_bytes(*header);
    [bits as u64, (bits >> 64) as u64]
}

fn take(own: &mut SendOptions, kind: (i32, i32), data: &[u8]) -> Result<()> {
    match kind {
        (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
            let local = data.get(4..).and_then(|rest| rest.first_chunk::<4>());
            let local = Ipv4Addr::from(*local.ok_or(Errno::INVALID)?);
            own.from = (!local.is_unspecified()).then_some(IpAddr::V4(local));
        }
        (libc::IPPROTO_IP, libc::IP_TTL) => own.hop_limit = header_byte(data)?,
        (libc::IPPROTO_IP, libc::IP_TOS) => own.tos = header_byte(data)?,
        (libc::IPPROTO_UDP, UDP_SEGMENT) => {
            let size = data.first_chunk().ok_or(Errno::INVALID)?;
            own.segment_bytes = Some(u16::from_ne_bytes(*size));
        }
        // What only sockets of other families pass on.
        (libc::SOL_SOCKET, libc::SCM_RIGHTS | libc::SCM_CREDENTIALS) => {}
        _ => return Err(Errno::INVALID),
    }
    Ok(())
}

/// A C `int` or a byte; -1 leaves it to the socket.
fn header_byte(data: &[u8]) -> Result<Option<u8>> {
    let number = match (data, data.first_chunk::<4>()) {
        ([byte], _) => i32::from(*byte),
        (_, Some(number)) => i32::from_ne_bytes(*number),
        _ => return Err(Errno::INVALID),
    };
    match number {
        -1 => Ok(None),
        number => u8::try_from(number).map(Some).map_err(|_| Errno::INVALID),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCAL: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 61);

    fn heard() -> Heard {
        Heard {
            from: Endpoint::v4(Ipv4Addr::new(10, 0, 2, 2), 40_000),
            to: Endpoint::v4(LOCAL, 53),
            len: 5,
            hop_limit: 61,
            tos: 0x10,
            drops: 3,
        }
    }

    #[test]
    fn what_is_told_of_the_address_can_be_sent_back() {
        let told = Messages::of(&heard(), Wanted::PACKET_INFO, 2, 128);
        assert_eq!((told.bytes.len(), told.is_cut), (32, false));
        let own = own_of(&told.bytes).unwrap();
        assert_eq!(own.from, Some(IpAddr::V4(LOCAL)));
        let hops = Messages::of(
            &heard(),
            Wanted::HOP_LIMIT | Wanted::TYPE_OF_SERVICE,
            2,
            128,
        );
        let own = own_of(&hops.bytes).unwrap();
        assert_eq!((own.hop_limit, own.tos), (Some(61), Some(0x10)));
    }

    #[test]
    fn only_what_is_wanted_is_told_and_cut_where_the_room_ends() {
        assert!(
            Messages::of(&heard(), Wanted::empty(), 2, 128)
                .bytes
                .is_empty()
        );
        let all = Messages::of(&heard(), Wanted::all(), 2, 256);
        assert_eq!(
            (all.bytes.len(), all.is_cut),
            (32 + 24 + 24 + 32 + 24, false)
        );
        for room in 0..all.bytes.len() - 4 {
            let cut = Messages::of(&heard(), Wanted::all(), 2, room);
            assert!(cut.is_cut && cut.bytes.len() <= room, "{room}");
        }
    }

    #[test]
    fn what_a_program_writes_in_vain_is_invalid() {
        let [mut short, mut unknown] =
            [(); 2].map(|()| Messages::of(&heard(), Wanted::HOP_LIMIT, 0, 64).bytes);
        short[0] = 15;
        unknown[12] = 77;
        for wrong in [&short, &unknown, &vec![0; 16], &vec![0xff; 24]] {
            assert_eq!(own_of(wrong).err(), Some(Errno::INVALID), "{wrong:?}");
        }
        assert_eq!(
            own_of(&[0; 15]).map(|own| own == SendOptions::default()),
            Ok(true)
        );
        assert_eq!(header_byte(&256_i32.to_ne_bytes()), Err(Errno::INVALID));
        assert_eq!(header_byte(&(-1_i32).to_ne_bytes()), Ok(None));
    }
}
