//! Unix sockets with connections: stream and seqpacket.

mod connection;
mod listen;
mod socket;

use alloc::sync::{Arc, Weak};
use core::sync::atomic::{AtomicBool, Ordering};

use mach::sync::{Once, Spin};
use mm::io::{Sink, Source, partial};
use sync::poll::{Events, Pollee};
use sync::{Error, Result};
use task::signal::broken_pipe;

use crate::endpoint::Endpoint;
use crate::inbox::{Ancillary, Reading, ReceiveMode};
use crate::outbox::Outbox;
use crate::rights::collect;
use crate::{list, names};
use connection::{Link, Shared, Side};
use listen::Listener;
use sockets::{CommonOptions, Held, PeekOffset, SocketFilter};
use sockets::{UnixFacts, UnixState};
use vfs::file::next_number;
use vfs::socket::{
    Control, MessageFlags, OptionName, PeerIdentity, Received, SocketAddress, SocketType,
    UnixAddress,
};

/// A socket that has, or will have, one peer; or that listens.
pub struct StreamSocket {
    number: u64,
    kind: SocketType,
    options: CommonOptions,
    peek_offset: PeekOffset,
    outbox: Arc<Outbox>,
    filter: Arc<SocketFilter>,
    pollee: Arc<Pollee>,
    name: Spin<UnixAddress>,
    /// Whether the name is its own, not its listener's.
    is_bound: AtomicBool,
    link: Once<Link>,
    listener: Once<Listener>,
    me: Weak<StreamSocket>,
    _held: Held,
}

impl StreamSocket {
    pub(super) fn new(kind: SocketType) -> Arc<Self> {
        let pollee = Arc::new(Pollee::new());
        let socket = Arc::new_cyclic(|me| Self {
            number: next_number(),
            kind,
            options: CommonOptions::default(),
            peek_offset: PeekOffset::default(),
            outbox: Outbox::new(pollee.clone()),
            filter: Arc::default(),
            pollee,
            name: Spin::new(UnixAddress::Unnamed),
            is_bound: AtomicBool::new(false),
            link: Once::new(),
            listener: Once::new(),
            me: me.clone(),
            _held: Held::one(),
        });
        list::enter(socket.number, socket.me.clone());
        socket
    }

    pub(super) fn pair(kind: SocketType) -> [Arc<Self>; 2] {
        let ends = [Self::new(kind), Self::new(kind)];
        let links = Link::pair([ends[0].side(), ends[1].side()]);
        for (end, link) in ends.iter().zip(links) {
            end.link.call_once(|| link);
        }
        ends
    }

    fn side(&self) -> Side {
        let wants = self.options.is_set(OptionName::PassCredentials);
        Side::new(
            self.shared(),
            self.name(),
            sockets::current_identity(),
            wants,
        )
    }

    fn shared(&self) -> Shared {
        Shared {
            number: self.number,
            filter: self.filter.clone(),
            outbox: self.outbox.clone(),
            pollee: self.pollee.clone(),
        }
    }

    fn name(&self) -> UnixAddress {
        self.name.lock().clone()
    }

    fn is_connected(&self) -> bool {
        self.link.get().is_some()
    }

    /// Nobody accepts it: its client hears that the connection is reset.
    fn refuse(&self) {
        if let Some(link) = self.link.get() {
            link.peer().reset();
        }
    }

    fn link(&self) -> Result<&Link> {
        self.link.get().ok_or(Error::NotConnected)
    }

    /// Connects to the listening socket: its new end of the connection.
    ///
    /// Errors: `IsConnected` if another thread was faster.
    fn connect_to(&self, listener: &Self, of: &Listener) -> Result<Arc<Self>> {
        let server = Self::new(self.kind);
        collect::wait_for(server.number, listener.number);
        *server.name.lock() = listener.name();
        let passes = listener.options.is_set(OptionName::PassCredentials);
        server
            .options
            .set(OptionName::PassCredentials, passes.into());
        let theirs = Side::new(server.shared(), listener.name(), of.program.clone(), passes);
        let [mine, its] = Link::pair([self.side(), theirs]);
        server.link.call_once(|| its);
        self.link.set(mine).map_err(|_| Error::IsConnected)?;
        Ok(server)
    }

    /// What goes with a message besides its bytes.
    fn ancillary(&self, link: &Link, control: Control) -> Result<Ancillary> {
        let passes = |side: &Side| side.wants_credentials.load(Ordering::Relaxed);
        let is_wanted = passes(link.own()) || passes(link.peer());
        Ancillary::new(control, is_wanted)
    }

    /// Sends a stretch of the stream.
    fn send_stretch(
        &self,
        link: &Link,
        from: &mut Source<'_>,
        mut ancillary: Ancillary,
        flags: MessageFlags,
    ) -> Result<usize> {
        let mut done = 0;
        while from.remaining() != 0 {
            match self.send_some(link, from, &mut ancillary, flags) {
                Ok(count) => done += count,
                Err(Error::BrokenPipe) if done == 0 => return Err(broken(flags)),
                Err(error) => return partial(done, error),
            }
        }
        Ok(done)
    }

    fn send_some(
        &self,
        link: &Link,
        from: &mut Source<'_>,
        ancillary: &mut Ancillary,
        flags: MessageFlags,
    ) -> Result<usize> {
        let (own, peer) = (link.own(), link.peer());
        if own.is_sending_over() {
            return Err(Error::BrokenPipe);
        }
        let limit = self.outbox.limit();
        let count = peer.inbox.put_stretch(from, ancillary, limit, flags)?;
        if count == 0 {
            self.wait_to_send(flags, || own.may_write_to(peer))?;
            return Ok(0);
        }
        peer.notify(match peer.inbox.has_urgent() {
            true => Events::READABLE | Events::PRI,
            false => Events::READABLE,
        });
        Ok(count)
    }

    /// Sends one message of a seqpacket socket. As with datagrams, no signal is raised.
    fn send_record(
        &self,
        link: &Link,
        from: &mut Source<'_>,
        ancillary: Ancillary,
        flags: MessageFlags,
    ) -> Result<usize> {
        let (own, peer) = (link.own(), link.peer());
        let size = from.remaining();
        if self.outbox.is_too_long(size) {
            return Err(Error::MessageTooLong);
        }
        loop {
            if own.is_sending_over() {
                return Err(Error::BrokenPipe);
            }
            if self.outbox.has_room() {
                break;
            }
            self.wait_to_send(flags, || own.may_write_to(peer))?;
        }
        let charge = self.outbox.charge(size);
        let filter = &peer.of.filter;
        let count = peer.inbox.put_message(from, ancillary, charge, filter)?;
        peer.notify(Events::READABLE);
        Ok(count)
    }

    fn wait_to_send(&self, flags: MessageFlags, changed: impl Fn() -> bool) -> Result<()> {
        let how = self.options.send_wait(flags.blocking());
        self.pollee
            .queue
            .wait(how.ok_or(Error::WouldBlock)?, || changed().then_some(()))
    }

    fn wait_to_receive(&self, flags: MessageFlags, changed: impl Fn() -> bool) -> Result<()> {
        let how = self.options.receive_wait(flags.blocking());
        self.pollee
            .queue
            .wait(how.ok_or(Error::WouldBlock)?, || changed().then_some(()))
    }

    /// Receives a stretch or a message; of length 0 at the end.
    fn receive_some(
        &self,
        link: &Link,
        to: &mut Sink<'_>,
        flags: MessageFlags,
    ) -> Result<Received> {
        let (own, peer) = (link.own(), link.peer());
        loop {
            let (is_over, before) = (own.is_receiving_over(), own.inbox.sizes());
            if let Some(received) = self.take(own, to, flags)? {
                // Whether there was room before cannot be known here: a sender on another
                // CPU may have filled it and gone to sleep meanwhile.
                if peer.may_write_to(own) {
                    peer.notify(Events::WRITABLE);
                }
                return Ok(received);
            }
            if own.take_reset() {
                return Err(Error::ConnectionReset);
            }
            if is_over {
                return Ok(Received::stream(0));
            }
            let changed = || own.inbox.sizes() != before || own.is_receiving_over();
            self.wait_to_receive(flags, changed)?;
        }
    }

    /// Takes what there is, or looks at it.
    fn take(&self, own: &Side, to: &mut Sink<'_>, flags: MessageFlags) -> Result<Option<Received>> {
        let taking = ReceiveMode::of(flags, &self.peek_offset);
        let taken = match self.kind {
            SocketType::Stream => own.inbox.take_stretch(to, self.reading(own, taking))?,
            _ => own.inbox.take_message(to, taking)?,
        };
        if let Some(received) = &taken {
            let passed = match taking {
                ReceiveMode::Remove => received.length,
                ReceiveMode::Peek(_) => received.bytes,
            };
            self.peek_offset.note(flags, passed);
        }
        Ok(taken)
    }

    fn reading(&self, own: &Side, taking: ReceiveMode) -> Reading {
        Reading {
            taking,
            by_sender: own.wants_credentials.load(Ordering::Relaxed),
            is_inline: self.options.is_set(OptionName::OutOfBandInline),
        }
    }

    /// Receives the urgent byte, which nobody waits for.
    ///
    /// Errors: `Invalid` if there is none, or it is read with the others.
    fn receive_urgent(
        &self,
        link: &Link,
        to: &mut Sink<'_>,
        flags: MessageFlags,
    ) -> Result<Received> {
        if self.options.is_set(OptionName::OutOfBandInline) {
            return Err(Error::Invalid);
        }
        let taking = ReceiveMode::of(flags, &self.peek_offset);
        link.own().inbox.take_urgent(to, taking)
    }

    /// Goes on until `least` bytes are there (SO_RCVLOWAT, MSG_WAITALL), the end, or a change
    /// of circumstances.
    fn receive_stream(
        &self,
        link: &Link,
        to: &mut Sink<'_>,
        flags: MessageFlags,
    ) -> Result<Received> {
        let least = match flags.contains(MessageFlags::WAITALL) {
            true => to.remaining(),
            false => self.options.low_water(to.remaining()),
        };
        let mut received = self.receive_some(link, to, flags)?;
        let goes_on = !flags.contains(MessageFlags::PEEK);
        while goes_on && received.control.files.is_empty() && received.bytes < least {
            match self.receive_some(link, to, flags) {
                Ok(more) if more.bytes == 0 => break,
                Ok(more) => {
                    received.bytes += more.bytes;
                    received.length += more.length;
                    received.control.files = more.control.files;
                }
                Err(_) => break,
            }
        }
        received.from = self.name_of_sender(link);
        Ok(received)
    }

    /// Whose the bytes of a stream are, if it has a name.
    fn name_of_sender(&self, link: &Link) -> Option<SocketAddress> {
        let name = link.peer().name.lock().clone();
        (name != UnixAddress::Unnamed).then_some(SocketAddress::Unix(name))
    }

    /// The program at the other end; of a listener, the one that listens.
    fn program(&self) -> Option<PeerIdentity> {
        let connected = self.link.get().map(|link| link.peer().program.clone());
        connected.or_else(|| self.listener.get().map(|one| one.program.clone()))
    }

    fn poll_connected(&self, link: &Link) -> Events {
        let (own, peer) = (link.own(), link.peer());
        let mut events = Events::empty();
        if is_readable(own) {
            events |= Events::READABLE;
        }
        if own.may_write_to(peer) {
            events |= Events::WRITABLE;
        }
        if own.is_receiving_over() {
            events |= Events::RDHUP;
            if own.is_sending_over() {
                events |= Events::HUP;
            }
        }
        if own.has_reset() {
            events |= Events::ERR;
        }
        if own.inbox.has_urgent() {
            events |= Events::PRI;
        }
        events
    }
}

impl Endpoint for StreamSocket {
    fn empty(&self) {
        if let Some(link) = self.link.get() {
            link.own().inbox.clear();
        }
        if let Some(listener) = self.listener.get() {
            listener.close(self);
        }
    }

    fn facts(&self) -> UnixFacts {
        let link = self.link.get();
        let listener = self.listener.get();
        let connected = link.map(|link| [link.own().inbox.len(), link.peer().inbox.len()]);
        let listening = listener.map(Listener::lengths);
        let [waiting, sent] = connected.or(listening).unwrap_or_default();
        UnixFacts {
            number: self.number,
            kind: self.kind,
            state: match (link, listener) {
                (Some(_), _) => UnixState::Connected,
                (None, Some(_)) => UnixState::Listening,
                (None, None) => UnixState::Unconnected,
            },
            name: self.name(),
            peer: link.map(|link| link.peer().of.number),
            waiting,
            sent,
        }
    }
}

/// What a send meets on a broken connection; SIGPIPE is raised unless `flags` forbid it.
fn broken(flags: MessageFlags) -> Error {
    match flags.contains(MessageFlags::NOSIGNAL) {
        true => Error::BrokenPipe,
        false => broken_pipe(),
    }
}

fn is_readable(side: &Side) -> bool {
    side.inbox.len() != 0 || side.inbox.messages() != 0 || side.is_receiving_over()
}

impl Drop for StreamSocket {
    fn drop(&mut self) {
        list::leave(self.number);
        collect::end_wait(self.number);
        if *self.is_bound.get_mut() {
            names::release(self.name.get_mut(), self.kind);
        }
    }
}
