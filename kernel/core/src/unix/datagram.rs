//! Unix sockets without connections: datagrams.
//!
//! A sender puts its message into the receiver's inbox; it waits on the receiver while
//! that is full. A connected sender's readiness for writing depends on the receiver, which
//! therefore knows the senders that are connected to it.

use alloc::string::String;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};

use base::VirtAddr;
use mach::sync::Spin;

use super::inbox::{Envelope, Inbox, Taking};
use super::names::{self, Node};
use super::{broken, caller, unix_name};
use crate::error::{Error, Result};
use crate::file::{File, OpenFile};
use crate::fs::Metadata;
use crate::io::{Sink, Source};
use crate::ipc::next_number;
use crate::poll::{Events, Pollee};
use crate::socket::{
    self, Blocking, CommonOptions, Control, Family, Held, Message, MessageFlags, OptionName,
    OptionValue, PeerCredentials, Received, Shutdown, Socket, SocketAddress, SocketType,
    UnixAddress, wait_on,
};
use crate::user;

/// Messages that wait at most (net.unix.max_dgram_qlen, and one more as in Linux).
const MESSAGES_MAX: usize = 11;

/// A socket that sends to, and receives from, anybody or its peer.
pub struct DatagramSocket {
    number: u64,
    options: CommonOptions,
    inbox: Inbox,
    pollee: Pollee,
    name: Spin<UnixAddress>,
    peer: Spin<Option<Weak<DatagramSocket>>>,
    /// Sockets connected to this one.
    senders: Spin<Vec<Weak<DatagramSocket>>>,
    is_receiving_over: AtomicBool,
    is_sending_over: AtomicBool,
    /// Its last descriptor is gone; senders that wait keep it alive.
    is_closed: AtomicBool,
    /// Of a pair: who made it.
    maker: PeerCredentials,
    me: Weak<DatagramSocket>,
    _held: Held,
}

impl DatagramSocket {
    pub(super) fn new() -> Arc<Self> {
        Arc::new_cyclic(|me| Self {
            number: next_number(),
            options: CommonOptions::default(),
            inbox: Inbox::new(),
            pollee: Pollee::new(),
            name: Spin::new(UnixAddress::Unnamed),
            peer: Spin::new(None),
            senders: Spin::new(Vec::new()),
            is_receiving_over: AtomicBool::new(false),
            is_sending_over: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
            maker: caller(),
            me: me.clone(),
            _held: Held::one(),
        })
    }

    pub(super) fn pair() -> [Arc<Self>; 2] {
        let ends = [Self::new(), Self::new()];
        ends[0].set_peer(Some(&ends[1]));
        ends[1].set_peer(Some(&ends[0]));
        ends
    }

    fn set_peer(&self, peer: Option<&Arc<Self>>) {
        let old = core::mem::replace(&mut *self.peer.lock(), peer.map(Arc::downgrade));
        if let Some(old) = old.and_then(|old| old.upgrade()) {
            old.senders.lock().retain(|sender| !sender.ptr_eq(&self.me));
        }
        if let Some(peer) = peer {
            let mut senders = peer.senders.lock();
            senders.retain(|sender| sender.strong_count() != 0);
            senders.push(self.me.clone());
        }
    }

    /// The peer: `None` if there is none, an error if it is gone.
    fn peer(&self) -> Option<Result<Arc<Self>>> {
        let peer = self.peer.lock().clone()?;
        Some(peer.upgrade().ok_or(Error::ConnectionRefused))
    }

    fn has_room_for(&self, bytes: usize) -> bool {
        self.inbox.messages() < MESSAGES_MAX && self.inbox.has_room_for(bytes)
    }

    /// Whether `sender` may send here: a connected socket hears only its peer.
    fn accepts_from(&self, sender: &Self) -> bool {
        self.peer
            .lock()
            .as_ref()
            .is_none_or(|peer| peer.ptr_eq(&sender.me))
    }

    fn target(&self, to: Option<&SocketAddress>) -> Result<Arc<Self>> {
        match to {
            Some(address) => names::find(unix_name(address)?, SocketType::Datagram)?.datagram(),
            None => self.peer().ok_or(Error::NotConnected)?,
        }
    }

    fn envelope(&self, target: &Self, control: Control) -> Result<Envelope> {
        let is_wanted = target.options.is_set(OptionName::PassCredentials);
        let mut envelope = Envelope::new(control, is_wanted)?;
        envelope.from = Some(self.name.lock().clone());
        Ok(envelope)
    }

    fn deliver(
        &self,
        target: &Self,
        from: &mut Source<'_>,
        envelope: Envelope,
        flags: MessageFlags,
    ) -> Result<usize> {
        let size = from.remaining();
        let mut envelope = Some(envelope);
        loop {
            if target.is_closed.load(Ordering::SeqCst) {
                return Err(Error::ConnectionRefused);
            }
            if target.is_receiving_over.load(Ordering::SeqCst) {
                return Err(Error::BrokenPipe);
            }
            if target.has_room_for(size) {
                match target.inbox.put_message(from, &mut envelope) {
                    Err(Error::WouldBlock) => {}
                    outcome => {
                        target.pollee.notify(Events::READABLE);
                        return outcome;
                    }
                }
            }
            let how = self.options.send_wait(flags.blocking());
            wait_on(&target.pollee.queue, how, || {
                let is_over = target.is_receiving_over.load(Ordering::SeqCst)
                    || target.is_closed.load(Ordering::SeqCst);
                (is_over || target.has_room_for(size)).then_some(())
            })?;
        }
    }

    /// A message was taken: senders may go on.
    fn tell_senders(&self) {
        self.pollee.queue.wake_all();
        let senders = self.senders.lock().clone();
        for sender in senders.iter().filter_map(Weak::upgrade) {
            sender.pollee.notify(Events::WRITABLE);
        }
    }

    fn is_writable(&self) -> bool {
        match self.peer() {
            Some(Ok(peer)) => peer.has_room_for(0),
            _ => true,
        }
    }
}

impl File for DatagramSocket {
    fn read(&self, open: &OpenFile, to: &mut Sink<'_>) -> Result<usize> {
        Ok(self.receive(to, MessageFlags::of(open))?.bytes)
    }

    fn write(&self, open: &OpenFile, from: &mut Source<'_>) -> Result<usize> {
        self.send(Message::plain(from), MessageFlags::of(open))
    }

    fn poll(&self) -> Events {
        let mut events = Events::empty();
        let is_over = self.is_receiving_over.load(Ordering::SeqCst);
        if self.inbox.messages() != 0 || is_over {
            events |= Events::READABLE;
        }
        if is_over {
            events |= Events::RDHUP;
            if self.is_sending_over.load(Ordering::SeqCst) {
                events |= Events::HUP;
            }
        }
        if self.is_writable() {
            events |= Events::WRITABLE;
        }
        events
    }

    fn pollee(&self) -> Option<&Pollee> {
        Some(&self.pollee)
    }

    fn close(&self, _open: &OpenFile) {
        self.is_closed.store(true, Ordering::SeqCst);
        self.tell_senders();
    }

    fn ioctl(&self, _open: &OpenFile, request: u32, argument: u64) -> Result<usize> {
        let bytes = match request {
            super::FIONREAD => self.inbox.first_length(),
            super::SIOCOUTQ => 0,
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
            return Err(Error::Invalid);
        }
        let name = names::bind(
            wanted,
            SocketType::Datagram,
            Node::Datagram(self.me.clone()),
        )?;
        *self.name.lock() = name;
        Ok(())
    }

    fn connect(&self, address: &SocketAddress, _blocking: Blocking) -> Result<()> {
        if *address == SocketAddress::Unspecified {
            self.set_peer(None);
            return Ok(());
        }
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
        if self.is_sending_over.load(Ordering::SeqCst) {
            return Err(broken(flags));
        }
        if message.from.remaining() > Inbox::capacity() {
            return Err(Error::MessageTooLong);
        }
        let target = self.target(message.to)?;
        if !target.accepts_from(self) {
            return Err(Error::NotPermitted);
        }
        let envelope = self.envelope(&target, message.control)?;
        self.deliver(&target, message.from, envelope, flags)
    }

    fn receive(&self, to: &mut Sink<'_>, flags: MessageFlags) -> Result<Received> {
        if flags.contains(MessageFlags::OOB) {
            return Err(Error::Unsupported);
        }
        let taking = Taking::of(flags);
        loop {
            let is_over = self.is_receiving_over.load(Ordering::SeqCst);
            if let Some(mut received) = self.inbox.take_message(to, taking)? {
                self.tell_senders();
                if !self.options.is_set(OptionName::PassCredentials) {
                    received.control.credentials = None;
                }
                return Ok(received);
            }
            if is_over {
                return Ok(Received::stream(0));
            }
            let how = self.options.receive_wait(flags.blocking());
            wait_on(&self.pollee.queue, how, || {
                let is_over = self.is_receiving_over.load(Ordering::SeqCst);
                (is_over || self.inbox.messages() != 0).then_some(())
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
        let peer = self.peer().ok_or(Error::NotConnected)?;
        let name = peer.map_or(UnixAddress::Unnamed, |peer| peer.name.lock().clone());
        Ok(SocketAddress::Unix(name))
    }

    fn option(&self, name: OptionName) -> Result<OptionValue> {
        match name {
            OptionName::Error => Ok(OptionValue::PendingError(None)),
            OptionName::Listening => Ok(false.into()),
            OptionName::PeerCredentials => {
                let known = self.peer.lock().is_some().then_some(self.maker);
                Ok(OptionValue::Credentials(
                    known.unwrap_or(PeerCredentials::UNKNOWN),
                ))
            }
            name => self.options.get(name).ok_or(Error::NoSuchOption),
        }
    }

    fn set_option(&self, name: OptionName, value: OptionValue) -> Result<()> {
        self.options.set(name, value).ok_or(Error::NoSuchOption)?
    }
}

impl Drop for DatagramSocket {
    fn drop(&mut self) {
        names::release(self.name.get_mut(), SocketType::Datagram);
        self.tell_senders();
    }
}
