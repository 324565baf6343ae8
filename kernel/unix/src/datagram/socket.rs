//! The calls of a datagram socket, as a file and as a socket.

use alloc::string::String;
use core::sync::atomic::Ordering;

use base::VirtAddr;
use mm::io::{Sink, Source};
use mm::user;
use sync::poll::{Events, Pollee};
use sync::{Error, Result};

use super::DatagramSocket;
use crate::inbox::{ReceiveMode, tell_credentials};
use crate::names::{self, already_named, unix_name};
use crate::requests::{FIONREAD, SIOCOUTQ};
use crate::rights::collect;
use vfs::Metadata;
use vfs::file::{File, OpenFile};
use vfs::socket::{
    self, Blocking, Family, Filter, Message, MessageFlags, OptionName, OptionValue,
    PeerCredentials, PeerIdentity, Received, Shutdown, Socket, SocketAddress, SocketType,
    UnixAddress,
};

impl File for DatagramSocket {
    fn read(&self, open: &OpenFile, to: &mut Sink<'_>) -> Result<usize> {
        Ok(self.receive(to, MessageFlags::of(open))?.bytes)
    }

    fn write(&self, open: &OpenFile, from: &mut Source<'_>) -> Result<usize> {
        self.send(Message::plain(from), MessageFlags::of(open))
    }

    fn poll(&self) -> Events {
        let mut events = Events::empty();
        let is_over = self.is_receiving_over();
        if self.inbox.messages() != 0 || is_over {
            events |= Events::READABLE;
        }
        if is_over {
            events |= Events::RDHUP;
            if self.is_sending_over() {
                events |= Events::HUP;
            }
        }
        if self.is_writable() {
            events |= Events::WRITABLE;
        }
        if self.was_left.load(Ordering::SeqCst) {
            events |= Events::ERR;
        }
        events
    }

    fn pollee(&self) -> Option<&Pollee> {
        Some(&self.pollee)
    }

    fn close(&self, _open: &OpenFile) {
        self.is_closed.store(true, Ordering::SeqCst);
        // A sender that waits keeps us; it may wait for what lies here.
        self.inbox.clear();
        self.tell_senders();
        collect::note_close();
    }

    fn ioctl(&self, _open: &OpenFile, request: u32, argument: u64) -> Result<usize> {
        let bytes = match request {
            FIONREAD => self.inbox.first_length(),
            SIOCOUTQ => self.outbox.charged(),
            _ => return Err(Error::NotTerminal),
        };
        user::write(VirtAddr(argument), bytes as u32)?;
        Ok(0)
    }

    fn metadata(&self) -> Result<Metadata> {
        Ok(socket::metadata(self.number))
    }

    fn label(&self) -> String {
        socket::label(self.number)
    }

    fn as_socket(&self) -> Option<&dyn Socket> {
        Some(self)
    }

    fn as_any(&self) -> &dyn core::any::Any {
        self
    }
}

impl DatagramSocket {
    /// Whose messages carry credentials gets a name before it sends, as in Linux.
    fn name_if_told(&self) -> Result<()> {
        let passes = self.options.is_set(OptionName::PassCredentials);
        match passes && *self.name.lock() == UnixAddress::Unnamed {
            true => self.bind(&SocketAddress::UNIX_UNNAMED),
            false => Ok(()),
        }
    }

    /// A message was taken, or looked at: then there is no more place than before.
    fn note_received(&self, taking: ReceiveMode, flags: MessageFlags, received: &Received) {
        match taking {
            ReceiveMode::Remove => {
                self.peek_offset.note(flags, received.length);
                self.tell_senders();
            }
            ReceiveMode::Peek(_) => self.peek_offset.note(flags, received.bytes),
        }
    }
}

impl Socket for DatagramSocket {
    fn family(&self) -> Family {
        Family::Unix
    }

    fn socket_type(&self) -> SocketType {
        SocketType::Datagram
    }

    fn bind(&self, address: &SocketAddress) -> Result<()> {
        let wanted = unix_name(address)?;
        if *self.name.lock() != UnixAddress::Unnamed {
            return already_named(wanted);
        }
        let name = names::bind(wanted, SocketType::Datagram, self.me.clone())?;
        *self.name.lock() = name;
        Ok(())
    }

    fn connect(&self, address: &SocketAddress, _blocking: Blocking) -> Result<()> {
        if *address == SocketAddress::Unspecified {
            self.set_peer(None);
            return Ok(());
        }
        self.name_if_told()?;
        let target = self.target(Some(address))?;
        if !target.accepts_from(self) {
            return Err(Error::NotPermitted);
        }
        self.set_peer(Some(&target));
        Ok(())
    }

    fn send(&self, message: Message<'_, '_>, flags: MessageFlags) -> Result<usize> {
        if flags.contains(MessageFlags::OOB) {
            return Err(Error::Unsupported);
        }
        if message.to.is_none() && self.known_peer().is_none() {
            return Err(Error::NotConnected);
        }
        self.name_if_told()?;
        if self.outbox.is_too_long(message.from.remaining()) {
            return Err(Error::MessageTooLong);
        }
        if self.is_sending_over() {
            return Err(Error::BrokenPipe);
        }
        let target = self.target(message.to)?;
        if !target.accepts_from(self) {
            return Err(Error::NotPermitted);
        }
        let ancillary = self.ancillary(&target, message.control)?;
        self.deliver(&target, message.from, ancillary, flags)
    }

    fn receive(&self, to: &mut Sink<'_>, flags: MessageFlags) -> Result<Received> {
        if flags.contains(MessageFlags::OOB) {
            return Err(Error::Unsupported);
        }
        loop {
            if let Some(error) = self.take_error() {
                return Err(error);
            }
            let taking = ReceiveMode::of(flags, &self.peek_offset);
            let (is_over, before) = (self.is_receiving_over(), self.inbox.sizes());
            if let Some(mut received) = self.inbox.take_message(to, taking)? {
                self.note_received(taking, flags, &received);
                tell_credentials(&self.options, &mut received);
                return Ok(received);
            }
            let how = self.options.receive_wait(flags.blocking());
            // Who may not wait hears nothing of the end, as on Linux.
            if is_over && how.is_some() {
                return Ok(Received::stream(0));
            }
            self.pollee.queue.wait(how.ok_or(Error::WouldBlock)?, || {
                let has_ended = self.is_receiving_over() || self.was_left.load(Ordering::SeqCst);
                (has_ended || self.inbox.sizes() != before).then_some(())
            })?;
        }
    }

    fn shutdown(&self, how: Shutdown) -> Result<()> {
        if how.ends_reading() {
            self.is_receiving_over.store(true, Ordering::SeqCst);
        }
        if how.ends_writing() {
            self.is_sending_over.store(true, Ordering::SeqCst);
        }
        self.pollee
            .notify(Events::READABLE | Events::WRITABLE | Events::RDHUP | Events::HUP);
        self.tell_senders();
        Ok(())
    }

    fn local_address(&self) -> Result<SocketAddress> {
        Ok(SocketAddress::Unix(self.name.lock().clone()))
    }

    fn peer_address(&self) -> Result<SocketAddress> {
        let peer = self.known_peer().ok_or(Error::NotConnected)?;
        let name = peer.upgrade().map(|peer| peer.name.lock().clone());
        let name = name.unwrap_or(UnixAddress::Unnamed);
        Ok(SocketAddress::Unix(name))
    }

    fn peer(&self) -> Option<PeerIdentity> {
        self.known_peer().map(|_| self.maker.clone())
    }

    fn option(&self, name: OptionName) -> Result<OptionValue> {
        match name {
            OptionName::Error => Ok(OptionValue::PendingError(self.take_error())),
            OptionName::PeekOffset => Ok(self.peek_offset.get()),
            OptionName::Listening => Ok(false.into()),
            OptionName::PeerCredentials => {
                let known = Socket::peer(self).map(|program| program.credentials);
                Ok(OptionValue::Credentials(
                    known.unwrap_or(PeerCredentials::UNKNOWN),
                ))
            }
            name => self.options.get(name).ok_or(Error::NoSuchOption),
        }
    }

    fn filter(&self) -> Option<&dyn Filter> {
        Some(&self.filter)
    }

    fn set_option(&self, name: OptionName, value: OptionValue) -> Result<()> {
        if name == OptionName::PeekOffset {
            return self.peek_offset.set(value);
        }
        self.options.set(name, value).ok_or(Error::NoSuchOption)??;
        if matches!(name, OptionName::SendBuffer | OptionName::SendBufferForced) {
            self.outbox.set_limit(self.options.send_bytes());
        }
        Ok(())
    }
}
