//! The packet socket as a file and as a socket of the kernel.

use alloc::string::String;
use alloc::sync::Arc;
use core::any::Any;
use core::ops::Range;

use base::VirtAddr;
use capture::View;
use mm::MemoryObject;
use mm::io::{Sink, Source};
use mm::user;
use sync::poll::{Events, Pollee};
use sync::{Error, Result};

use super::listener::{Binding, Listener};
use super::options::Options;
use super::send;
use super::watching::Watching;
use crate::stack::{NetStack, current_stack};
use sockets::Held;
use vfs::Metadata;
use vfs::file::{File, OpenFile};
use vfs::socket::{
    self, Blocking, Control, Family, Filter, Message, MessageFlags, OptionName, OptionValue,
    PacketAddress, Received, ReceivedFlags, Shutdown, Socket, SocketAddress, SocketType,
};

/// Bytes that could be received, stored as a C `int`.
const FIONREAD: u32 = 0x541b;
/// Bytes of an Ethernet address.
const STATION_BYTES: u8 = 6;

/// A packet socket; dropping it ends the listening.
pub(super) struct PacketSocket {
    stack: Arc<NetStack>,
    listener: Arc<Listener>,
    options: Options,
    _watching: Watching,
    _held: Held,
}

impl PacketSocket {
    pub(super) fn new(view: View, protocol: u16) -> Result<Arc<Self>> {
        let stack = current_stack();
        let socket = Self {
            listener: Listener::new(view),
            options: Options::new(stack.clone()),
            stack,
            _watching: Watching::begin(),
            _held: Held::one(),
        };
        socket.listen(Binding {
            interface: 0,
            protocol,
        })?;
        Ok(Arc::new(socket))
    }

    fn listen(&self, binding: Binding) -> Result<()> {
        self.listener.bind(binding);
        match binding.protocol {
            0 => {
                self.stack.shared.sniffers.remove(&self.listener);
                Ok(())
            }
            _ => self.stack.shared.sniffers.add(&self.listener),
        }
    }
}

impl Drop for PacketSocket {
    fn drop(&mut self) {
        self.stack.shared.sniffers.remove(&self.listener);
    }
}

impl File for PacketSocket {
    fn read(&self, open: &OpenFile, to: &mut Sink<'_>) -> Result<usize> {
        Ok(self.receive(to, MessageFlags::of(open))?.bytes)
    }

    fn write(&self, open: &OpenFile, from: &mut Source<'_>) -> Result<usize> {
        self.send(Message::plain(from), MessageFlags::of(open))
    }

    fn poll(&self) -> Events {
        match self.listener.is_readable() {
            true => Events::READABLE | Events::WRITABLE,
            false => Events::WRITABLE,
        }
    }

    fn pollee(&self) -> Option<&Pollee> {
        Some(&self.listener.pollee)
    }

    fn ioctl(&self, _open: &OpenFile, request: u32, argument: u64) -> Result<usize> {
        match request {
            FIONREAD => {
                user::write(VirtAddr(argument), self.listener.first_len() as u32)?;
                Ok(0)
            }
            _ => Err(Error::NotTerminal),
        }
    }

    /// The ring, all of it, shared.
    fn map(self: Arc<Self>, range: Range<u64>, is_shared: bool) -> Result<Arc<dyn MemoryObject>> {
        let memory = self.listener.ring_memory().ok_or(Error::Invalid)?;
        match is_shared && range == (0..memory.size()) {
            true => Ok(memory),
            false => Err(Error::Invalid),
        }
    }

    fn as_socket(&self) -> Option<&dyn Socket> {
        Some(self)
    }

    fn metadata(&self) -> Result<Metadata> {
        Ok(socket::metadata(self.listener.number))
    }

    fn label(&self) -> String {
        socket::label(self.listener.number)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Socket for PacketSocket {
    fn family(&self) -> Family {
        Family::Packet
    }

    fn socket_type(&self) -> SocketType {
        match self.listener.view {
            View::Link => SocketType::Raw,
            View::Network => SocketType::Datagram,
        }
    }

    fn bind(&self, address: &SocketAddress) -> Result<()> {
        let SocketAddress::Packet(wanted) = address else {
            return Err(Error::Invalid);
        };
        if wanted.interface != 0 && self.stack.interface(wanted.interface).is_none() {
            return Err(Error::WrongDevice);
        }
        let protocol = match wanted.protocol {
            0 => self.listener.binding().protocol,
            protocol => protocol,
        };
        self.listen(Binding {
            interface: wanted.interface,
            protocol,
        })
    }

    fn connect(&self, _address: &SocketAddress, _blocking: Blocking) -> Result<()> {
        Err(Error::Unsupported)
    }

    fn send(&self, message: Message<'_, '_>, _flags: MessageFlags) -> Result<usize> {
        let to = match message.to {
            None => None,
            Some(SocketAddress::Packet(to)) => Some(to),
            Some(_) => return Err(Error::Invalid),
        };
        send::send(&self.stack, &self.listener, to, message.from)
    }

    fn receive(&self, to: &mut Sink<'_>, flags: MessageFlags) -> Result<Received> {
        let packet = self.listener.receive(flags)?;
        let copied = to.put_whole(&packet.bytes)?;
        let mut received = Received {
            bytes: copied,
            length: packet.bytes.len(),
            from: Some(SocketAddress::Packet(packet.from)),
            control: Control::default(),
            flags: ReceivedFlags::empty(),
        };
        let wants_auxiliary = self.options.wants_auxiliary();
        received.control.ancillary = self.listener.ancillary(&packet, wants_auxiliary);
        if copied < packet.bytes.len() {
            received.flags |= ReceivedFlags::TRUNC;
        }
        Ok(received)
    }

    fn shutdown(&self, _how: Shutdown) -> Result<()> {
        Err(Error::Unsupported)
    }

    fn local_address(&self) -> Result<SocketAddress> {
        let Binding {
            interface,
            protocol,
        } = self.listener.binding();
        let mut name = PacketAddress {
            interface,
            protocol,
            ..PacketAddress::default()
        };
        if let Some(interface) = self.stack.interface(interface) {
            let [a, b, c, d, e, f] = interface.mac;
            name.hardware_type = interface.hardware_type;
            name.station_len = STATION_BYTES;
            name.station = [a, b, c, d, e, f, 0, 0];
        }
        Ok(SocketAddress::Packet(name))
    }

    fn peer_address(&self) -> Result<SocketAddress> {
        Err(Error::Unsupported)
    }

    fn option(&self, name: OptionName) -> Result<OptionValue> {
        self.options.get(&self.listener, name)
    }

    fn filter(&self) -> Option<&dyn Filter> {
        Some(&self.listener.filter)
    }

    fn set_option(&self, name: OptionName, value: OptionValue) -> Result<()> {
        self.options.set(&self.listener, name, value)
    }
}
