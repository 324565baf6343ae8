//! The raw socket as a file and as a socket of the kernel.

use alloc::string::String;
use alloc::sync::Arc;
use core::any::Any;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use base::VirtAddr;
use cred::Capability;
use inet::{Endpoint, RawHeader};
use mm::io::{Sink, Source};
use mm::user;
use sync::poll::{Events, Pollee};
use sync::{Error, Result};

use super::options::RawOptions;
use crate::address::heard_from;
use crate::udp::Heard;
use crate::udp::socket::reached;
use net::packet::Packet;
use net::stack::interface::CARD;
use net::stack::raw_listener::RawListener;
use net::stack::{NetStack, current_stack};
use sockets::Held;
use sockets::cork::Cork;
use vfs::Metadata;
use vfs::file::{File, OpenFile};
use vfs::socket::{
    self, Blocking, Control, Family, Filter, Message, MessageFlags, OptionName, OptionValue,
    Received, ReceivedFlags, Shutdown, Socket, SocketAddress, SocketType,
};

/// Linux's number for "I write IP headers myself".
const ANY: u8 = 255;

/// Bytes that could be received, stored as a C `int`.
const FIONREAD: u32 = 0x541b;
/// Bytes that nobody has received yet; packets leave at once.
const SIOCOUTQ: u32 = 0x5411;

/// A raw socket; dropping it ends the listening.
pub(crate) struct RawSocket {
    pub(crate) stack: Arc<NetStack>,
    pub(crate) listener: Arc<RawListener>,
    pub(crate) options: RawOptions,
    pub(crate) cork: Cork<RawHeader>,
    _held: Held,
}

impl RawSocket {
    /// A socket for packets of `protocol`.
    ///
    /// Errors: `NotPermitted` without CAP_NET_RAW, `ProtocolUnsupported` for none, and for
    /// numbers that do not fit into a header.
    pub(crate) fn open(family: Family, protocol: u32) -> Result<Arc<Self>> {
        let protocol = u8::try_from(protocol).map_err(|_| Error::ProtocolUnsupported)?;
        if protocol == 0 {
            return Err(Error::ProtocolUnsupported);
        }
        cred::credentials().get().require(Capability::NetRaw)?;
        let listener = RawListener::new(family, protocol);
        let stack = current_stack();
        stack.add_raw(&listener)?;
        if listener.is_of_transport() {
            show_transports(&stack);
        }
        Ok(Arc::new(Self {
            options: RawOptions::new(&stack, &listener),
            stack,
            listener,
            cork: Cork::default(),
            _held: Held::one(),
        }))
    }

    /// The address in a name, and the port, which means nothing but must fit.
    pub(crate) fn address(&self, name: &SocketAddress) -> Result<Endpoint> {
        let protocol = u16::from(self.listener.protocol);
        match (self.listener.family, name) {
            (Family::Inet, SocketAddress::Inet(SocketAddr::V4(name))) => {
                Ok(Endpoint::v4(*name.ip(), name.port()))
            }
            (Family::Inet6, SocketAddress::Inet(SocketAddr::V6(name))) => {
                let port = name.port();
                let is_free = self.listener.protocol == ANY && port <= u16::from(u8::MAX);
                let is_mapped = name.ip().to_ipv4_mapped().is_some();
                match is_mapped || port != 0 && port != protocol && !is_free {
                    true => Err(Error::Invalid),
                    false => Ok(Endpoint::v6(*name.ip(), port)),
                }
            }
            _ => Err(Error::FamilyUnsupported),
        }
    }

    /// How a program sees an address of this socket's family.
    fn name(&self, address: Option<IpAddr>, port: u16) -> SocketAddress {
        let any: IpAddr = match self.listener.family {
            Family::Inet6 => Ipv6Addr::UNSPECIFIED.into(),
            _ => Ipv4Addr::UNSPECIFIED.into(),
        };
        let end = Endpoint::new(address.unwrap_or(any), port);
        heard_from(self.listener.family, end, CARD)
    }

    /// What IP's header said of a packet, as far as the filter has left of it.
    fn heard(&self, packet: &Packet) -> Option<Heard> {
        let bytes = &packet.bytes;
        let part = |at| bytes.get(at..).and_then(|rest| rest.first_chunk::<16>());
        let four = |at: usize| bytes.get(at..).and_then(|rest| rest.first_chunk::<4>());
        let (src, dst, hop_limit, tos) = match self.listener.family {
            Family::Inet6 => {
                let [first, second, ..] = *part(0)?;
                let class = first << 4 | second >> 4;
                let (src, dst) = (IpAddr::from(*part(8)?), IpAddr::from(*part(24)?));
                (src, dst, *bytes.get(7)?, class)
            }
            _ => {
                let (src, dst) = (IpAddr::from(*four(12)?), IpAddr::from(*four(16)?));
                (src, dst, *bytes.get(8)?, *bytes.get(1)?)
            }
        };
        Some(Heard {
            from: Endpoint::new(src, 0),
            to: Endpoint::new(dst, 0),
            interface: packet.from.interface,
            hop_limit,
            tos,
            segment_bytes: 0,
            drops: 0,
        })
    }
}

/// Has all stacks show packets of TCP and UDP too.
fn show_transports(of: &NetStack) {
    for number in 0..of.shard_count() {
        of.with_shard(number, |stack, _| stack.show_transports());
    }
}

/// Whether a socket may have this name: an address of ours, or a group's.
fn may_bind(of: &NetStack, local: IpAddr) -> bool {
    let is_ours = of.with_first_shard(|stack| stack.is_local(local)) == Some(true);
    let all = of.interfaces().into_iter();
    let mut own = all.filter_map(|interface| of.address(&interface));
    is_ours || local.is_multicast() || own.any(|own| IpAddr::V4(own.addr()) == local)
}

impl Drop for RawSocket {
    fn drop(&mut self) {
        self.stack.remove_raw(&self.listener);
    }
}

impl File for RawSocket {
    fn read(&self, open: &OpenFile, to: &mut Sink<'_>) -> Result<usize> {
        Ok(self.receive(to, MessageFlags::of(open))?.bytes)
    }

    fn write(&self, open: &OpenFile, from: &mut Source<'_>) -> Result<usize> {
        self.send(Message::plain(from), MessageFlags::of(open))
    }

    fn poll(&self) -> Events {
        match self.listener.hearing.is_readable() {
            true => Events::READABLE | Events::WRITABLE,
            false => Events::WRITABLE,
        }
    }

    fn pollee(&self) -> Option<&Pollee> {
        Some(&self.listener.hearing.pollee)
    }

    fn ioctl(&self, _open: &OpenFile, request: u32, argument: u64) -> Result<usize> {
        let bytes = match request {
            FIONREAD => self.listener.hearing.first_len(),
            SIOCOUTQ => 0,
            _ => return Err(Error::NotTerminal),
        };
        let hidden = self.listener.hidden_bytes();
        user::write(VirtAddr(argument), bytes.saturating_sub(hidden) as u32)?;
        Ok(0)
    }

    fn as_socket(&self) -> Option<&dyn Socket> {
        Some(self)
    }

    fn metadata(&self) -> Result<Metadata> {
        Ok(socket::metadata(self.listener.hearing.number))
    }

    fn label(&self) -> String {
        socket::label(self.listener.hearing.number)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Socket for RawSocket {
    fn family(&self) -> Family {
        self.listener.family
    }

    fn socket_type(&self) -> SocketType {
        SocketType::Raw
    }

    fn protocol(&self) -> u8 {
        self.listener.protocol
    }

    fn bind(&self, name: &SocketAddress) -> Result<()> {
        let SocketAddress::Inet(name) = name else {
            return Err(Error::FamilyUnsupported);
        };
        if name.is_ipv6() != (self.listener.family == Family::Inet6) {
            return Err(Error::FamilyUnsupported);
        }
        if self.listener.names().peer.is_some() {
            return Err(Error::Invalid);
        }
        let local = Some(name.ip()).filter(|ip| !ip.is_unspecified());
        if local.is_some_and(|ip| !may_bind(&self.stack, ip)) {
            return Err(Error::AddressNotAvailable);
        }
        self.listener.rename(|names| names.local = local);
        Ok(())
    }

    fn connect(&self, name: &SocketAddress, _blocking: Blocking) -> Result<()> {
        let (peer, peer_port) = match name {
            SocketAddress::Unspecified => (None, 0),
            name => {
                let named = self.address(name)?;
                (Some(reached(named).addr), named.port)
            }
        };
        self.listener.rename(|names| {
            (names.peer, names.peer_port) = (peer, peer_port);
        });
        Ok(())
    }

    fn send(&self, message: Message<'_, '_>, flags: MessageFlags) -> Result<usize> {
        if flags.contains(MessageFlags::OOB) {
            return Err(Error::Unsupported);
        }
        self.put(message, flags)
    }

    fn receive(&self, to: &mut Sink<'_>, flags: MessageFlags) -> Result<Received> {
        if flags.contains(MessageFlags::ERRQUEUE) {
            return Err(Error::WouldBlock);
        }
        let hearing = &self.listener.hearing;
        let packet = hearing.receive(flags)?;
        let shown = packet.bytes.get(self.listener.hidden_bytes()..);
        let shown = shown.unwrap_or_default();
        let copied = to.put_whole(shown)?;
        let heard = self.heard(&packet);
        let reports = &self.options.reports;
        let control = heard.map(|heard| reports.of(self.listener.family, &heard));
        Ok(Received {
            bytes: copied,
            length: shown.len(),
            from: Some(self.name(heard.map(|heard| heard.from.addr), 0)),
            control: Control {
                ancillary: hearing.ancillary(&packet, false),
                ..control.unwrap_or_default()
            },
            flags: match copied < shown.len() {
                true => ReceivedFlags::TRUNC,
                false => ReceivedFlags::empty(),
            },
        })
    }

    fn shutdown(&self, _how: Shutdown) -> Result<()> {
        let peer = self.listener.names().peer;
        peer.map(drop).ok_or(Error::NotConnected)
    }

    // As on Linux the protocol stands where others have a port.
    fn local_address(&self) -> Result<SocketAddress> {
        let local = self.listener.names().local;
        Ok(self.name(local, self.listener.protocol.into()))
    }

    // And a peer whose port is zero is none.
    fn peer_address(&self) -> Result<SocketAddress> {
        let names = self.listener.names();
        let peer = names.peer.filter(|_| names.peer_port != 0);
        peer.map(|peer| self.name(Some(peer), names.peer_port))
            .ok_or(Error::NotConnected)
    }

    fn option(&self, name: OptionName) -> Result<OptionValue> {
        self.options.get(self, name)
    }

    fn filter(&self) -> Option<&dyn Filter> {
        Some(&self.listener.hearing.filter)
    }

    fn set_option(&self, name: OptionName, value: OptionValue) -> Result<()> {
        self.options.set(self, name, value)
    }
}
