//! Sockets: what may be asked of them, and the words for it.
//!
//! A [`Socket`] is a file with names and messages. The families implement it (`unix`, `net`) with
//! what they share (`sockets`); `kernel/linux` decodes the socket calls once and speaks only to this trait.
//! read(2) and write(2) go through [`File`] and mean a message without flags.
//! Not here: the layout of addresses, control messages and options in a program's memory.

mod address;
mod extended_error;
mod filter;
mod interface_name;
mod message;
mod option;
mod packet;
mod peer;
mod xdp_address;

pub use address::{SocketAddress, UnixAddress};
pub use extended_error::{ErrorOrigin, ExtendedError, SendsOver};
pub use filter::{Filter, FilterInstruction};
pub use interface_name::InterfaceName;
pub use message::{
    Control, HeaderByte, Message, MessageFlags, PacketInfo, PeerCredentials, Received,
    ReceivedFlags,
};
pub use option::{
    GroupMembership, OptionName, OptionValue, REPAIR_OPTIONS_MAX, RepairWindow, RingRequest,
    SocketMemory, TcpInfo, UmemRequest, XdpStatistics,
};
pub use packet::{
    AncillaryData, Auxiliary, Membership, MembershipKind, PacketAddress, PacketStatistics,
    StampUnit,
};
pub use peer::PeerIdentity;
pub use xdp_address::{BindFlags, XdpAddress};

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;

use mbuf::Chain;
use mm::io::Sink;
use sync::{Error, Result};

use crate::file::{File, OpenFile};
use crate::{FileType, Metadata};

/// An address family that we speak.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Family {
    /// Between programs of this machine.
    Unix,
    /// IPv4.
    Inet,
    /// IPv6, which also speaks to IPv4 peers.
    Inet6,
    /// Frames as they pass an interface.
    Packet,
    /// To the kernel, about what it knows.
    Netlink,
    /// Whole frames of a link, in rings.
    Xdp,
}

/// How a socket delivers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum SocketType {
    /// Bytes in order, without boundaries.
    Stream,
    /// Messages, each by itself.
    Datagram,
    /// Messages in order, over a connection.
    SeqPacket,
    /// Packets with their network header.
    Raw,
}

/// Which directions to shut down.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shutdown {
    /// No more receiving.
    Read,
    /// No more sending.
    Write,
    /// Neither.
    Both,
}

impl Shutdown {
    /// Whether receiving ends.
    pub const fn ends_reading(self) -> bool {
        matches!(self, Self::Read | Self::Both)
    }

    /// Whether sending ends.
    pub const fn ends_writing(self) -> bool {
        matches!(self, Self::Write | Self::Both)
    }
}

/// What stat(2) says of the socket with this number.
pub fn metadata(number: u64) -> Metadata {
    Metadata {
        number,
        ..Metadata::anonymous(FileType::Socket)
    }
}

/// Its name in /proc/PID/fd.
pub fn label(number: u64) -> String {
    format!("socket:[{number}]")
}

/// Whether a call may wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Blocking {
    /// It waits until it can be done, or the socket's time limit.
    MayWait,
    /// It returns [`Error::WouldBlock`] (connect: [`Error::InProgress`]) instead.
    Never,
}

/// What can send pages without copying them: a connection that keeps them until its peer has
/// acknowledged them.
pub trait PageSink {
    /// Writes `pages` by the rules of write(2); returns the bytes taken.
    fn write_pages(&self, open: &OpenFile, pages: Chain) -> Result<usize>;
}

/// One end of a conversation.
pub trait Socket: File {
    /// Its address family.
    fn family(&self) -> Family;

    /// How it delivers.
    fn socket_type(&self) -> SocketType;

    /// The number of its protocol (IANA); 0 where the family has only one.
    fn protocol(&self) -> u8 {
        0
    }

    /// Gives it a name of its own.
    fn bind(&self, address: &SocketAddress) -> Result<()>;

    /// Lets others connect; at most `backlog` of them wait to be accepted.
    fn listen(&self, _backlog: u32) -> Result<()> {
        Err(Error::Unsupported)
    }

    /// Takes the connection that has waited longest, and the name of its peer.
    fn accept(&self, _blocking: Blocking) -> Result<(Arc<dyn Socket>, SocketAddress)> {
        Err(Error::Unsupported)
    }

    /// Connects to a peer; for datagrams sets where they go and come from.
    /// [`SocketAddress::Unspecified`] takes that back.
    fn connect(&self, address: &SocketAddress, blocking: Blocking) -> Result<()>;

    /// Sends one message, or a stretch of the stream; returns the bytes taken.
    ///
    /// A broken connection raises SIGPIPE unless `NOSIGNAL` is given.
    fn send(&self, message: Message<'_, '_>, flags: MessageFlags) -> Result<usize>;

    /// Receives one message, or a stretch of the stream, into `to`.
    fn receive(&self, to: &mut Sink<'_>, flags: MessageFlags) -> Result<Received>;

    /// Ends one direction or both.
    fn shutdown(&self, how: Shutdown) -> Result<()>;

    /// Its own name.
    fn local_address(&self) -> Result<SocketAddress>;

    /// Its peer's name; [`Error::NotConnected`] without one.
    fn peer_address(&self) -> Result<SocketAddress>;

    /// Who is at the other end, if it is a program of this machine that is known.
    fn peer(&self) -> Option<PeerIdentity> {
        None
    }

    /// The value of an option.
    fn option(&self, name: OptionName) -> Result<OptionValue>;

    /// Its filter, if its kind can have one.
    fn filter(&self) -> Option<&dyn Filter> {
        None
    }

    /// A program was put into its filter, or taken out.
    fn filter_changed(&self) -> Result<()> {
        Ok(())
    }

    /// Sets an option.
    fn set_option(&self, name: OptionName, value: OptionValue) -> Result<()>;

    /// Where pages go that it can send as they lie, if it can.
    fn page_sink(&self) -> Option<&dyn PageSink> {
        None
    }
}
