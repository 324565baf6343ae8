//! What goes through a socket at once: bytes, names and what travels with them.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};
use core::num::NonZeroU32;

use bitflags::bitflags;
use mm::io::Source;

use super::{AncillaryData, Blocking, ExtendedError, SocketAddress};
use crate::file::OpenFile;

bitflags! {
    /// How to send or receive; the bits are Linux's own (MSG_*).
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
    pub struct MessageFlags: u32 {
        /// Urgent data.
        const OOB = 0x1;
        /// Received bytes stay in the queue.
        const PEEK = 0x2;
        /// Only to hosts on the same network.
        const DONTROUTE = 0x4;
        /// Returns the message's whole length even if it did not fit.
        const TRUNC = 0x20;
        /// Does not block.
        const DONTWAIT = 0x40;
        /// Ends a record.
        const EOR = 0x80;
        /// Waits until all that was asked for is there.
        const WAITALL = 0x100;
        /// Confirms that the neighbour is reachable.
        const CONFIRM = 0x800;
        /// Receives from the queue of errors.
        const ERRQUEUE = 0x2000;
        /// No SIGPIPE on a broken connection.
        const NOSIGNAL = 0x4000;
        /// More follows: the protocol may wait for it.
        const MORE = 0x8000;
        /// Does not block after the first message (recvmmsg).
        const WAITFORONE = 0x1_0000;
        /// Without a copy, completion on the queue of errors.
        const ZEROCOPY = 0x400_0000;
        /// Sends with the opening handshake.
        const FASTOPEN = 0x2000_0000;
        /// Received descriptors close on exec.
        const CMSG_CLOEXEC = 0x4000_0000;
    }
}

bitflags! {
    /// What became of a received message; the bits are Linux's own (MSG_*).
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
    pub struct ReceivedFlags: u32 {
        /// Urgent data.
        const OOB = 0x1;
        /// Control data did not fit.
        const CTRUNC = 0x8;
        /// The message did not fit.
        const TRUNC = 0x20;
        /// The end of a record.
        const EOR = 0x80;
        /// From the queue of errors.
        const ERRQUEUE = 0x2000;
    }
}

/// What to send.
pub struct Message<'a, 's> {
    /// The bytes.
    pub from: &'a mut Source<'s>,
    /// Where to, if not to the connected peer.
    pub to: Option<&'a SocketAddress>,
    /// What travels with them.
    pub control: Control,
}

impl<'a, 's> Message<'a, 's> {
    /// Bytes for the connected peer and nothing else: write(2).
    pub fn plain(from: &'a mut Source<'s>) -> Self {
        Self {
            from,
            to: None,
            control: Control::default(),
        }
    }
}

/// Data besides the bytes (control messages). Empty in the common case, at no cost.
#[derive(Default)]
pub struct Control {
    /// Openings handed over (SCM_RIGHTS).
    pub files: Vec<Arc<OpenFile>>,
    /// Who sends (SCM_CREDENTIALS).
    pub credentials: Option<PeerCredentials>,
    /// Through where it came or shall go (IP_PKTINFO, IPV6_PKTINFO).
    pub packet_info: Option<PacketInfo>,
    /// Hops left or allowed (IP_TTL, IPV6_HOPLIMIT).
    pub hop_limit: Option<HeaderByte>,
    /// Differentiated services and ECN (IP_TOS, IPV6_TCLASS).
    pub traffic_class: Option<HeaderByte>,
    /// Whom it was for (IP_ORIGDSTADDR, IPV6_ORIGDSTADDR).
    pub original_destination: Option<SocketAddr>,
    /// Messages that found no room before it (SO_RXQ_OVFL).
    pub drops: Option<NonZeroU32>,
    /// The bytes are datagrams of this size: to be cut (UDP_SEGMENT), or joined (UDP_GRO).
    pub segment_bytes: Option<u16>,
    /// When and how a packet came (SCM_TIMESTAMP, PACKET_AUXDATA).
    pub ancillary: Option<Box<AncillaryData>>,
    /// What the queue of errors says (IP_RECVERR, IPV6_RECVERR).
    pub error: Option<Box<ExtendedError>>,
}

impl Control {
    /// Whether nothing travels with the bytes.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
            && self.credentials.is_none()
            && self.packet_info.is_none()
            && self.hop_limit.is_none()
            && self.traffic_class.is_none()
            && self.original_destination.is_none()
            && self.drops.is_none()
            && self.segment_bytes.is_none()
            && self.ancillary.is_none()
            && self.error.is_none()
    }
}

/// A process and its user, as told to a peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PeerCredentials {
    /// The process.
    pub pid: u32,
    /// Its effective user.
    pub uid: u32,
    /// Its effective group.
    pub gid: u32,
}

impl PeerCredentials {
    /// What is said of a peer that is not there.
    pub const UNKNOWN: Self = Self {
        pid: 0,
        uid: u32::MAX,
        gid: u32::MAX,
    };
    /// What comes with a message whose sender was not noted: nobody (user_namespaces(7),
    /// overflowuid).
    pub const UNNOTED: Self = Self {
        pid: 0,
        uid: 65_534,
        gid: 65_534,
    };
}

impl MessageFlags {
    /// What read(2) and write(2) through `open` mean.
    pub fn of(open: &OpenFile) -> Self {
        if open.is_nonblocking() {
            Self::DONTWAIT
        } else {
            Self::empty()
        }
    }

    /// Whether a call with these flags may wait.
    pub fn blocking(self) -> Blocking {
        if self.contains(Self::DONTWAIT) {
            Blocking::Never
        } else {
            Blocking::MayWait
        }
    }
}

/// A datagram's interface and local address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacketInfo {
    /// The interface's number; 0 for any.
    pub interface: u32,
    /// The address of ours that it came to or shall come from.
    pub local: IpAddr,
}

/// A field of an IP header, with the family in whose words a program hears of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HeaderByte {
    /// At the level of IPv4.
    V4(u8),
    /// At the level of IPv6.
    V6(u8),
}

impl HeaderByte {
    /// The field.
    pub fn value(self) -> u8 {
        match self {
            Self::V4(value) | Self::V6(value) => value,
        }
    }
}

/// What was received.
pub struct Received {
    /// Bytes stored.
    pub bytes: usize,
    /// The message's whole length; more than `bytes` if it did not fit.
    pub length: usize,
    /// Who sent it; `None` where the connection says it.
    pub from: Option<SocketAddress>,
    /// What travelled with it.
    pub control: Control,
    /// What became of it.
    pub flags: ReceivedFlags,
}

impl Received {
    /// Bytes of a stream, nothing else.
    pub fn stream(bytes: usize) -> Self {
        Self {
            bytes,
            length: bytes,
            from: None,
            control: Control::default(),
            flags: ReceivedFlags::empty(),
        }
    }
}
