//! The UDP socket as a file and as a socket of the kernel.

use alloc::string::String;
use core::any::Any;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::num::NonZeroU16;

use inet::{Endpoint, SendOptions};
use mm::io::{Sink, Source};
use sync::poll::{Events, Pollee};
use sync::{Error, Result};

use super::UdpSocket;
use crate::address::{from_endpoint, further_scope, heard_from, to_endpoint, to_name};
use crate::ioctl::SIOCOUTQ;
use crate::{bound_device, groups, ioctl, options};
use vfs::Metadata;
use vfs::file::{File, OpenFile};
use vfs::socket::{
    Blocking, Control, Family, Filter, HeaderByte, Message, MessageFlags, OptionName, OptionValue,
    PacketInfo, Received, ReceivedFlags, Shutdown, Socket, SocketAddress, SocketMemory, SocketType,
};

/// IANA's number of UDP.
const PROTOCOL_UDP: u8 = 17;

impl File for UdpSocket {
    fn read(&self, open: &OpenFile, to: &mut Sink<'_>) -> Result<usize> {
        let how = self.handle.receive_wait(MessageFlags::of(open).blocking());
        Ok(self.take(to, how)?.map_or(0, |got| got.copied))
    }

    fn write(&self, open: &OpenFile, from: &mut Source<'_>) -> Result<usize> {
        self.put_message(Message::plain(from), MessageFlags::of(open))
    }

    fn poll(&self) -> Events {
        self.handle.poll()
    }

    fn pollee(&self) -> Option<&Pollee> {
        Some(&self.handle.waiter.pollee)
    }

    fn ioctl(&self, _open: &OpenFile, request: u32, argument: u64) -> Result<usize> {
        match request {
            // What is not gathered leaves at once.
            SIOCOUTQ => ioctl::tell(self.cork.gathered_bytes(), argument),
            _ => ioctl::ioctl(&self.handle, request, argument),
        }
    }

    fn as_socket(&self) -> Option<&dyn Socket> {
        Some(self)
    }

    fn metadata(&self) -> Result<Metadata> {
        Ok(self.handle.metadata())
    }

    fn label(&self) -> String {
        self.handle.label()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Socket for UdpSocket {
    fn family(&self) -> Family {
        self.handle.family
    }

    fn socket_type(&self) -> SocketType {
        SocketType::Datagram
    }

    fn protocol(&self) -> u8 {
        PROTOCOL_UDP
    }

    fn bind(&self, address: &SocketAddress) -> Result<()> {
        let name = to_name(&self.handle, address)?;
        bound_device::follow_scope(&self.handle, address)?;
        self.handle.bind(name)
    }

    fn connect(&self, address: &SocketAddress, _blocking: Blocking) -> Result<()> {
        if *address == SocketAddress::Unspecified {
            return self.disconnect();
        }
        let peer = to_endpoint(&self.handle, address)?;
        bound_device::follow_scope(&self.handle, address)?;
        self.connect_to(peer)
    }

    fn send(&self, message: Message<'_, '_>, flags: MessageFlags) -> Result<usize> {
        // Linux refuses what UDP has not for IPv4 alone.
        if flags.contains(MessageFlags::OOB) && self.handle.family == Family::Inet {
            return Err(Error::Unsupported);
        }
        self.put_message(message, flags)
    }

    fn receive(&self, to: &mut Sink<'_>, flags: MessageFlags) -> Result<Received> {
        if flags.contains(MessageFlags::ERRQUEUE) {
            return self.next_failure(to);
        }
        let how = self.handle.receive_wait(flags.blocking());
        let got = if flags.contains(MessageFlags::PEEK) {
            self.peek(to, how)?
        } else {
            self.take(to, how)?
        };
        let Some(got) = got else {
            return Ok(Received::stream(0));
        };
        let cut = got.len > got.copied;
        let family = self.handle.family;
        let mut control = self.reports.of(family, &got.heard);
        control.segment_bytes = NonZeroU16::new(got.heard.segment_bytes).map(NonZeroU16::get);
        Ok(Received {
            bytes: got.copied,
            length: got.len,
            from: Some(heard_from(family, got.heard.from, got.heard.interface)),
            control,
            flags: if cut {
                ReceivedFlags::TRUNC
            } else {
                ReceivedFlags::empty()
            },
        })
    }

    fn shutdown(&self, how: Shutdown) -> Result<()> {
        self.handle.shutdown(how)
    }

    fn local_address(&self) -> Result<SocketAddress> {
        Ok(from_endpoint(&self.handle, self.handle.local()?))
    }

    fn peer_address(&self) -> Result<SocketAddress> {
        Ok(from_endpoint(&self.handle, self.handle.remote()?))
    }

    fn option(&self, name: OptionName) -> Result<OptionValue> {
        match name {
            OptionName::Listening => Ok(false.into()),
            OptionName::UdpCork => Ok(self.cork.is_on().into()),
            OptionName::UdpSegment => {
                let size = self.handle.options()?.segment_bytes;
                Ok(OptionValue::Number(size.into()))
            }
            OptionName::NoCheck => Ok(self.handle.options()?.no_checksum.into()),
            OptionName::MemoryInfo => self.memory().map(OptionValue::Memory),
            OptionName::UdpJoin => Ok(self.handle.options()?.join_datagrams.into()),
            name => match (self.reports.get(name), groups::get(&self.handle, name)) {
                (Some(is_on), _) => Ok(is_on.into()),
                (None, Some(value)) => value,
                (None, None) => options::get(&self.handle, name),
            },
        }
    }

    fn filter(&self) -> Option<&dyn Filter> {
        Some(&self.handle.waiter.filter)
    }

    fn filter_changed(&self) -> Result<()> {
        self.handle.filter_changed()
    }

    fn set_option(&self, name: OptionName, value: OptionValue) -> Result<()> {
        match name {
            OptionName::UdpCork => {
                self.turn_cork(value.flag()?);
                Ok(())
            }
            OptionName::UdpSegment => {
                let size = u16::try_from(value.number()?).map_err(|_| Error::Invalid)?;
                self.handle
                    .configure(|options| options.segment_bytes = size)
            }
            OptionName::NoCheck => {
                let on = value.flag()?;
                self.handle.configure(|options| options.no_checksum = on)
            }
            OptionName::UdpJoin => {
                let on = value.flag()?;
                self.handle.configure(|options| options.join_datagrams = on)
            }
            name if self.reports.get(name).is_some() => {
                self.reports.set(name, value.flag()?);
                Ok(())
            }
            name => match groups::set(&self.handle, name, value) {
                Some(done) => done,
                None => options::set(&self.handle, name, value),
            },
        }
    }
}

impl UdpSocket {
    /// What the socket holds, in all its members.
    fn memory(&self) -> Result<SocketMemory> {
        let options = self.handle.options()?;
        let (mut received, mut drops) = (0, 0_u32);
        self.handle.with_all(|id, stack, _| {
            let (bytes, dropped) = stack.datagram_memory(id)?;
            received += bytes;
            drops = drops.wrapping_add(dropped);
            Ok(())
        })?;
        let count = |bytes: usize| u32::try_from(bytes).unwrap_or(u32::MAX);
        Ok(SocketMemory {
            received: count(received),
            receive_buffer: options.recv_buffer,
            sending: count(self.cork.gathered_bytes()),
            send_buffer: options.send_buffer,
            drops,
        })
    }

    /// The source that IP_PKTINFO wishes for a datagram to `to`: an address, or one of an
    /// interface.
    ///
    /// Errors: `WrongDevice` for an interface that we lack.
    fn source_of(&self, info: PacketInfo, to: Option<Endpoint>) -> Result<IpAddr> {
        let stack = &self.handle.stack;
        groups::check_number(stack, info.interface)?;
        let local = info.local.to_canonical();
        if !local.is_unspecified() || !stack.has_further() {
            return Ok(local);
        }
        let to = to.or_else(|| self.handle.remote().ok());
        let on = to.and_then(|to| stack.source_on(info.interface, to.addr));
        Ok(on.unwrap_or(local))
    }

    /// What a program wants of a datagram.
    ///
    /// Errors: those of the address; `WrongDevice` for an interface that we lack.
    pub(crate) fn send_options(
        &self,
        to: Option<&SocketAddress>,
        control: &Control,
    ) -> Result<SendOptions> {
        let scope = to.map_or(0, further_scope);
        let to = to.map(|to| to_endpoint(&self.handle, to)).transpose()?;
        let to = to.map(reached);
        let from = match (control.packet_info, scope) {
            (Some(info), _) => Some(self.source_of(info, to)?),
            (None, 0) => None,
            (None, scope) => to.and_then(|to| self.handle.stack.source_on(scope, to.addr)),
        };
        Ok(SendOptions {
            to,
            from,
            hop_limit: control.hop_limit.map(HeaderByte::value),
            tos: control.traffic_class.map(HeaderByte::value),
            segment_bytes: control.segment_bytes,
        })
    }
}

/// Where a datagram to nobody goes: to ourselves.
pub(crate) fn reached(to: Endpoint) -> Endpoint {
    let own = match to.addr {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED) => Ipv6Addr::LOCALHOST.into(),
        addr => addr,
    };
    Endpoint::new(own, to.port)
}
