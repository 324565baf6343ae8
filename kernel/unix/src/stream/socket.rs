//! The calls of a stream socket, as a file and as a socket.

use alloc::string::String;
use alloc::sync::Arc;
use core::sync::atomic::Ordering;

use base::VirtAddr;
use mm::io::{Sink, Source};
use mm::user;
use sync::poll::{Events, Pollee};
use sync::{Error, Result};

use super::StreamSocket;
use super::listen::Listener;
use crate::inbox::tell_credentials;
use crate::names::{self, already_named, unix_name};
use crate::requests::{FIONREAD, SIOCATMARK, SIOCOUTQ};
use crate::rights::collect;
use vfs::Metadata;
use vfs::file::{File, OpenFile};
use vfs::socket::{
    self, Blocking, Family, Filter, Message, MessageFlags, OptionName, OptionValue,
    PeerCredentials, PeerIdentity, Received, Shutdown, Socket, SocketAddress, SocketType,
    UnixAddress,
};

impl File for StreamSocket {
    fn read(&self, open: &OpenFile, to: &mut Sink<'_>) -> Result<usize> {
        Ok(self.receive(to, MessageFlags::of(open))?.bytes)
    }

    fn write(&self, open: &OpenFile, from: &mut Source<'_>) -> Result<usize> {
        self.send(Message::plain(from), MessageFlags::of(open))
    }

    fn poll(&self) -> Events {
        if let Some(link) = self.link.get() {
            return self.poll_connected(link);
        }
        match self.listener.get() {
            Some(listener) => listener.poll(),
            None => Events::WRITABLE | Events::HUP,
        }
    }

    fn pollee(&self) -> Option<&Pollee> {
        Some(&self.pollee)
    }

    fn ioctl(&self, _open: &OpenFile, request: u32, argument: u64) -> Result<usize> {
        let is_listening = self.listener.get().is_some();
        let waiting = match (request, self.link.get()) {
            (FIONREAD, None) if is_listening => return Err(Error::Invalid),
            (FIONREAD | SIOCOUTQ | SIOCATMARK, None) => 0,
            (FIONREAD, Some(link)) => link.own().inbox.unread(),
            (SIOCOUTQ, Some(link)) => link.peer().inbox.len().max(self.outbox.charged()),
            (SIOCATMARK, Some(link)) => usize::from(link.own().inbox.is_at_mark()),
            _ => return Err(Error::NotTerminal),
        };
        user::write(VirtAddr(argument), waiting as u32)?;
        Ok(0)
    }

    fn close(&self, _open: &OpenFile) {
        if let Some(listener) = self.listener.get() {
            listener.close(self);
        }
        collect::note_close();
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

impl StreamSocket {
    /// Whose messages carry credentials gets a name before it connects, as in Linux.
    fn name_if_told(&self) -> Result<()> {
        let passes = self.options.is_set(OptionName::PassCredentials);
        match passes && self.name() == UnixAddress::Unnamed {
            true => self.bind(&SocketAddress::UNIX_UNNAMED),
            false => Ok(()),
        }
    }
}

impl Socket for StreamSocket {
    fn family(&self) -> Family {
        Family::Unix
    }

    fn socket_type(&self) -> SocketType {
        self.kind
    }

    fn bind(&self, address: &SocketAddress) -> Result<()> {
        let wanted = unix_name(address)?;
        if self.name() != UnixAddress::Unnamed {
            return already_named(wanted);
        }
        let name = names::bind(wanted, self.kind, self.me.clone())?;
        if let Some(link) = self.link.get() {
            *link.own().name.lock() = name.clone();
        }
        *self.name.lock() = name;
        self.is_bound.store(true, Ordering::Relaxed);
        Ok(())
    }

    fn listen(&self, backlog: u32) -> Result<()> {
        if self.name() == UnixAddress::Unnamed || self.is_connected() {
            return Err(Error::Invalid);
        }
        self.listener
            .call_once(|| Listener::new(sockets::current_identity()))
            .set_limit(backlog);
        self.pollee.notify(Events::WRITABLE);
        Ok(())
    }

    fn accept(&self, blocking: Blocking) -> Result<(Arc<dyn Socket>, SocketAddress)> {
        let listener = self.listener.get().ok_or(Error::Invalid)?;
        let socket = listener.accept(self, blocking)?;
        let peer = socket.peer_address().unwrap_or(SocketAddress::UNIX_UNNAMED);
        Ok((socket, peer))
    }

    fn connect(&self, address: &SocketAddress, blocking: Blocking) -> Result<()> {
        let target = names::find::<Self>(unix_name(address)?, self.kind)?;
        if target.kind != self.kind {
            return Err(Error::WrongProtocolType);
        }
        if self.listener.get().is_some() {
            return Err(Error::Invalid);
        }
        let listener = target.listener.get().ok_or(Error::ConnectionRefused)?;
        self.name_if_told()?;
        listener.connect(&target, self, blocking)?;
        self.pollee.notify(Events::WRITABLE);
        Ok(())
    }

    fn send(&self, message: Message<'_, '_>, flags: MessageFlags) -> Result<usize> {
        let is_stream = self.kind == SocketType::Stream;
        let is_urgent = flags.contains(MessageFlags::OOB);
        if is_urgent && !(is_stream && message.from.remaining() != 0) {
            return Err(Error::Unsupported);
        }
        if message.to.is_some() && is_stream {
            return Err(match self.is_connected() {
                true => Error::IsConnected,
                false => Error::Unsupported,
            });
        }
        let link = self.link()?;
        let ancillary = self.ancillary(link, message.control)?;
        match self.kind {
            SocketType::Stream => self.send_stretch(link, message.from, ancillary, flags),
            _ => self.send_record(link, message.from, ancillary, flags),
        }
    }

    fn receive(&self, to: &mut Sink<'_>, flags: MessageFlags) -> Result<Received> {
        let link = match (self.link.get(), self.kind) {
            (Some(link), _) => link,
            (None, SocketType::Stream) => return Err(Error::Invalid),
            (None, _) => return Err(Error::NotConnected),
        };
        let is_urgent = flags.contains(MessageFlags::OOB);
        let mut received = match self.kind {
            SocketType::Stream if is_urgent => return self.receive_urgent(link, to, flags),
            SocketType::Stream if to.remaining() == 0 => return Ok(Received::stream(0)),
            SocketType::Stream => self.receive_stream(link, to, flags)?,
            _ if is_urgent => return Err(Error::Unsupported),
            _ => self.receive_some(link, to, flags)?,
        };
        tell_credentials(&self.options, &mut received);
        Ok(received)
    }

    fn shutdown(&self, how: Shutdown) -> Result<()> {
        if let Some(listener) = self.listener.get() {
            if how.ends_reading() {
                listener.refuse(self);
            }
            return Ok(());
        }
        // As on Linux there is nothing wrong with ending what has not begun.
        let Some(link) = self.link.get() else {
            return Ok(());
        };
        if how.ends_reading() {
            link.own().end_receiving();
            link.peer().end_sending();
        }
        if how.ends_writing() {
            link.own().end_sending();
            link.peer().end_receiving();
        }
        if how == Shutdown::Both {
            link.own().notify(Events::HUP);
            link.peer().notify(Events::HUP);
        }
        Ok(())
    }

    fn local_address(&self) -> Result<SocketAddress> {
        Ok(SocketAddress::Unix(self.name()))
    }

    fn peer_address(&self) -> Result<SocketAddress> {
        Ok(SocketAddress::Unix(self.link()?.peer().name.lock().clone()))
    }

    fn peer(&self) -> Option<PeerIdentity> {
        self.program()
    }

    fn option(&self, name: OptionName) -> Result<OptionValue> {
        match name {
            OptionName::Error => {
                let was_reset = self.link.get().is_some_and(|link| link.own().take_reset());
                Ok(OptionValue::PendingError(
                    was_reset.then_some(Error::ConnectionReset),
                ))
            }
            OptionName::Listening => Ok(self.listener.get().is_some().into()),
            OptionName::PeekOffset => Ok(self.peek_offset.get()),
            OptionName::PeerCredentials => {
                let known = self.program().map(|program| program.credentials);
                let told = known.unwrap_or(PeerCredentials::UNKNOWN);
                Ok(OptionValue::Credentials(told))
            }
            name => self.options.get(name).ok_or(Error::NoSuchOption),
        }
    }

    fn filter(&self) -> Option<&dyn Filter> {
        Some(&*self.filter)
    }

    fn set_option(&self, name: OptionName, value: OptionValue) -> Result<()> {
        if name == OptionName::PeekOffset {
            return self.peek_offset.set(value);
        }
        self.options.set(name, value).ok_or(Error::NoSuchOption)??;
        if matches!(name, OptionName::SendBuffer | OptionName::SendBufferForced) {
            self.outbox.set_limit(self.options.send_bytes());
        }
        if name == OptionName::PassCredentials
            && let Some(link) = self.link.get()
        {
            link.own()
                .wants_credentials
                .store(value.flag()?, Ordering::Relaxed);
        }
        Ok(())
    }
}
