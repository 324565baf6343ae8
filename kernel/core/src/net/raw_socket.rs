//! The raw socket as a file and as a socket of the kernel.

use alloc::string::String;
use alloc::sync::Arc;
use core::any::Any;
use core::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

use base::VirtAddr;
use inet::RawHeader;

use super::interface::{CARD, interfaces, on_interface, sender};
use super::poll::after_send;
use super::raw::{LISTENERS, RawListener};
use super::raw_options::RawOptions;
use super::shard::with_shard;
use super::surroundings::Link;
use super::udp::shard_of;
use crate::error::{Error, Result};
use crate::file::{File, OpenFile};
use crate::fs::Metadata;
use crate::io::{Sink, Source};
use crate::packet::chain_of;
use crate::poll::{Events, Pollee};
use crate::socket::{
    self, Blocking, Control, Family, Held, Message, MessageFlags, OptionName, OptionValue,
    Received, ReceivedFlags, Shutdown, Socket, SocketAddress, SocketFilter, SocketType,
};
use crate::task::{Capability, current};
use crate::user;

/// IANA's numbers of transports that have sockets of their own, and of none.
const NONE: u8 = 0;
const TCP: u8 = 6;
const UDP: u8 = 17;
/// Linux' number for "I write IP headers myself".
const ANY: u8 = 255;

/// Bytes that could be received, stored as a C `int`.
const FIONREAD: u32 = 0x541b;
/// Bytes that IPv4's longest packet has behind its header.
const PAYLOAD_BYTES_MAX: usize = 65_515;
/// Where the sender's address lies in an IPv4 header.
const SOURCE_AT: usize = 12;

/// A raw socket; dropping it ends the listening.
pub(super) struct RawSocket {
    listener: Arc<RawListener>,
    options: RawOptions,
    _held: Held,
}

impl RawSocket {
    /// A socket for packets of `protocol`.
    ///
    /// Errors: `NotPermitted` without CAP_NET_RAW, `ProtocolUnsupported` for TCP, UDP and
    /// numbers that are none.
    pub(super) fn open(protocol: u32) -> Result<Arc<Self>> {
        current().credentials.get().require(Capability::NetRaw)?;
        let protocol = u8::try_from(protocol).map_err(|_| Error::ProtocolUnsupported)?;
        if matches!(protocol, NONE | TCP | UDP | ANY) {
            return Err(Error::ProtocolUnsupported);
        }
        let listener = RawListener::new(protocol);
        LISTENERS.add(&listener)?;
        Ok(Arc::new(Self {
            listener,
            options: RawOptions::new(),
            _held: Held::one(),
        }))
    }

    fn transmit(&self, dst: Ipv4Addr, from: &mut Source<'_>) -> Result<usize> {
        let len = from.remaining();
        if len > PAYLOAD_BYTES_MAX {
            return Err(Error::MessageTooLong);
        }
        let header = RawHeader {
            src: self.listener.names().local,
            dst,
            protocol: self.listener.protocol,
            ttl: self.options.ttl(),
            tos: self.options.type_of_service(),
            may_broadcast: self.listener.hearing.common.is_set(OptionName::Broadcast),
        };
        let payload = chain_of(from)?;
        let send = |stack: &mut inet::Stack, link: &mut Link| {
            stack.send_raw(link, &header, payload)?;
            after_send(link);
            Ok(len)
        };
        let sent = match sender(header.src, dst) {
            CARD => with_shard(shard_of(dst.into()), send),
            station => on_interface(station, send),
        };
        sent.unwrap_or(Err(Error::NetworkDown))
    }
}

impl Drop for RawSocket {
    fn drop(&mut self) {
        LISTENERS.remove(&self.listener);
    }
}

/// The IPv4 address in a name; ports mean nothing here. `None` for 0.0.0.0.
fn address(name: &SocketAddress) -> Result<Option<Ipv4Addr>> {
    match name {
        SocketAddress::Inet(SocketAddr::V4(name)) => {
            Ok(Some(*name.ip()).filter(|ip| !ip.is_unspecified()))
        }
        _ => Err(Error::FamilyUnsupported),
    }
}

fn name(address: Option<Ipv4Addr>) -> SocketAddress {
    let ip = address.unwrap_or(Ipv4Addr::UNSPECIFIED);
    SocketAddress::Inet(SocketAddr::V4(SocketAddrV4::new(ip, 0)))
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
        match request {
            FIONREAD => {
                let len = self.listener.hearing.first_len();
                user::write(VirtAddr(argument), len as u32)?;
                Ok(0)
            }
            _ => Err(Error::NotTerminal),
        }
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
        Family::Inet
    }

    fn socket_type(&self) -> SocketType {
        SocketType::Raw
    }

    fn protocol(&self) -> u8 {
        self.listener.protocol
    }

    fn bind(&self, name: &SocketAddress) -> Result<()> {
        let local = address(name)?;
        let is_ours = |ip: Ipv4Addr| {
            let mut own = interfaces().filter_map(|interface| interface.address());
            ip.is_loopback() || own.any(|own| own.addr() == ip)
        };
        if local.is_some_and(|ip| !is_ours(ip)) {
            return Err(Error::AddressNotAvailable);
        }
        self.listener.rename(|names| names.local = local);
        Ok(())
    }

    fn connect(&self, name: &SocketAddress, _blocking: Blocking) -> Result<()> {
        let peer = match name {
            SocketAddress::Unspecified => None,
            name => address(name)?,
        };
        self.listener.rename(|names| names.peer = peer);
        Ok(())
    }

    fn send(&self, message: Message<'_, '_>, flags: MessageFlags) -> Result<usize> {
        if flags.contains(MessageFlags::OOB) {
            return Err(Error::Unsupported);
        }
        let named = message.to.map(address).transpose()?.flatten();
        let peer = named.or(self.listener.names().peer);
        self.transmit(peer.ok_or(Error::DestinationRequired)?, message.from)
    }

    fn receive(&self, to: &mut Sink<'_>, flags: MessageFlags) -> Result<Received> {
        if flags.contains(MessageFlags::ERRQUEUE) {
            return Err(Error::WouldBlock);
        }
        let hearing = &self.listener.hearing;
        let packet = hearing.receive(flags)?;
        let copied = to.put_whole(&packet.bytes)?;
        let source = packet.bytes.get(SOURCE_AT..);
        let source = source.and_then(|bytes| bytes.first_chunk::<4>());
        let control = Control {
            circumstances: hearing.circumstances(&packet, false),
            ..Control::default()
        };
        Ok(Received {
            bytes: copied,
            length: packet.bytes.len(),
            from: Some(name(source.map(|octets| Ipv4Addr::from(*octets)))),
            control,
            flags: match copied < packet.bytes.len() {
                true => ReceivedFlags::TRUNC,
                false => ReceivedFlags::empty(),
            },
        })
    }

    fn shutdown(&self, _how: Shutdown) -> Result<()> {
        match self.listener.names().peer {
            Some(_) => Err(Error::Unsupported),
            None => Err(Error::NotConnected),
        }
    }

    fn local_address(&self) -> Result<SocketAddress> {
        Ok(name(self.listener.names().local))
    }

    fn peer_address(&self) -> Result<SocketAddress> {
        let peer = self.listener.names().peer;
        peer.map(|peer| name(Some(peer))).ok_or(Error::NotConnected)
    }

    fn option(&self, name: OptionName) -> Result<OptionValue> {
        self.options.get(&self.listener, name)
    }

    fn filter(&self) -> Option<&SocketFilter> {
        Some(&self.listener.hearing.filter)
    }

    fn set_option(&self, name: OptionName, value: OptionValue) -> Result<()> {
        self.options.set(&self.listener, name, value)
    }
}
