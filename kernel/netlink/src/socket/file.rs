//! The netlink socket as a file and as a socket of the kernel.

use alloc::string::String;
use alloc::vec::Vec;
use core::any::Any;
use core::sync::atomic::Ordering;

use super::NetlinkSocket;
use crate::endpoint::group_bit;
use mach::mem::fallible::TryGrow;
use mm::io::{Sink, Source};
use sync::poll::{Events, Pollee};
use sync::{Error, Result};
use vfs::Metadata;
use vfs::file::{File, OpenFile};
use vfs::socket::{
    self, Blocking, Control, Family, Filter, Message, MessageFlags, OptionName, OptionValue,
    Received, ReceivedFlags, Shutdown, Socket, SocketAddress, SocketType,
};

/// The kernel's end: number 0, in no group.
const KERNEL: SocketAddress = SocketAddress::Netlink { port: 0, groups: 0 };
/// Bytes of the longest datagram that a program may send, whatever its buffer.
const SENT_BYTES_MAX: usize = 256 << 10;

impl File for NetlinkSocket {
    fn read(&self, open: &OpenFile, to: &mut Sink<'_>) -> Result<usize> {
        Ok(self.receive(to, MessageFlags::of(open))?.bytes)
    }

    fn write(&self, open: &OpenFile, from: &mut Source<'_>) -> Result<usize> {
        self.send(Message::plain(from), MessageFlags::of(open))
    }

    fn poll(&self) -> Events {
        let queue = self.endpoint.queue.lock();
        let mut events = Events::WRITABLE;
        if queue.has_overrun() && !self.endpoint.flags.has(OptionName::NetlinkNoOverruns) {
            events |= Events::ERR;
        }
        let has_dump = || self.dump.try_lock().is_none_or(|dump| dump.is_some());
        if !queue.is_empty() || has_dump() {
            events |= Events::READABLE;
        }
        events
    }

    fn pollee(&self) -> Option<&Pollee> {
        Some(&self.endpoint.pollee)
    }

    fn as_socket(&self) -> Option<&dyn Socket> {
        Some(self)
    }

    fn metadata(&self) -> Result<Metadata> {
        Ok(socket::metadata(self.number))
    }

    fn label(&self) -> String {
        socket::label(self.number)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Socket for NetlinkSocket {
    fn filter(&self) -> Option<&dyn Filter> {
        Some(&self.endpoint.filter)
    }

    fn family(&self) -> Family {
        Family::Netlink
    }

    fn socket_type(&self) -> SocketType {
        self.kind
    }

    fn protocol(&self) -> u8 {
        self.endpoint.protocol as u8
    }

    /// Also joins the first 32 groups, as the address says.
    fn bind(&self, address: &SocketAddress) -> Result<()> {
        let SocketAddress::Netlink { port, groups } = *address else {
            return Err(Error::Invalid);
        };
        self.bind_port(port)?;
        let low = u64::from(u32::MAX);
        self.change_groups(|before| before & !low | u64::from(groups));
        Ok(())
    }

    /// Only the kernel can be connected to, and is without that.
    fn connect(&self, address: &SocketAddress, _blocking: Blocking) -> Result<()> {
        match *address {
            SocketAddress::Unspecified => Ok(()),
            ref address => {
                kernel_only(address)?;
                self.bind_port(0).map(drop)
            }
        }
    }

    fn send(&self, message: Message<'_, '_>, flags: MessageFlags) -> Result<usize> {
        if flags.contains(MessageFlags::OOB) {
            return Err(Error::Unsupported);
        }
        message.to.map_or(Ok(()), kernel_only)?;
        self.bind_port(0)?;
        let room = self.endpoint.options.send_buffer.load(Ordering::Relaxed) as usize;
        let len = message.from.remaining();
        if len > room.min(SENT_BYTES_MAX) {
            return Err(Error::MessageTooLong);
        }
        let mut bytes = Vec::new();
        bytes.make_room(len).map_err(|_| Error::NoBuffers)?;
        bytes.resize(len, 0);
        message.from.take_whole(&mut bytes)?;
        self.obey(&bytes);
        Ok(len)
    }

    fn receive(&self, to: &mut Sink<'_>, flags: MessageFlags) -> Result<Received> {
        self.room_seen.fetch_max(to.remaining(), Ordering::Relaxed);
        let datagram = self.next(flags)?;
        let bytes = to.put_whole(&datagram.bytes)?;
        let length = datagram.bytes.len();
        let cut = match bytes < length {
            true => ReceivedFlags::TRUNC,
            false => ReceivedFlags::empty(),
        };
        Ok(Received {
            bytes,
            length,
            from: Some(SocketAddress::Netlink {
                port: 0,
                groups: group_bit(datagram.group) as u32,
            }),
            control: Control::default(),
            flags: cut,
        })
    }

    fn shutdown(&self, _how: Shutdown) -> Result<()> {
        Err(Error::Unsupported)
    }

    fn local_address(&self) -> Result<SocketAddress> {
        Ok(SocketAddress::Netlink {
            port: self.endpoint.port(),
            groups: self.endpoint.groups() as u32,
        })
    }

    fn peer_address(&self) -> Result<SocketAddress> {
        Ok(KERNEL)
    }

    fn option(&self, name: OptionName) -> Result<OptionValue> {
        self.get_option(name)
    }

    fn set_option(&self, name: OptionName, value: OptionValue) -> Result<()> {
        self.change_option(name, value)
    }
}

/// Refuses all but the kernel: `ConnectionRefused`, and for groups `NotPermitted`.
fn kernel_only(address: &SocketAddress) -> Result<()> {
    match address {
        SocketAddress::Netlink { port: 0, groups: 0 } => Ok(()),
        SocketAddress::Netlink { groups: 0, .. } => Err(Error::ConnectionRefused),
        SocketAddress::Netlink { .. } => Err(Error::NotPermitted),
        _ => Err(Error::Invalid),
    }
}
