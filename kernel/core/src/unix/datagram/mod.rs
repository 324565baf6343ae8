//! Unix sockets without connections: datagrams.
//!
//! A sender puts its message into the receiver's inbox; it waits while its own send buffer is
//! full, and on the receiver while many messages lie there. A connected sender's readiness for writing depends on the receiver, which
//! therefore knows the senders that are connected to it.

mod socket;

use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};

use mach::sync::Spin;

use super::inbox::{Envelope, Inbox};
use super::list::{self, UnixFacts, UnixState};
use super::names::{self, Node};
use super::outbox::Outbox;
use super::{broken, caller, unix_name};
use crate::error::{Error, Result};
use crate::io::Source;
use crate::ipc::next_number;
use crate::poll::{Events, Pollee};
use crate::socket::{
    CommonOptions, Control, Held, MessageFlags, OptionName, PeerCredentials, SocketAddress,
    SocketFilter, SocketType, UnixAddress, wait_on,
};

/// Messages that wait at most for who is not the senders' peer (net.unix.max_dgram_qlen, and one
/// more as in Linux).
const MESSAGES_MAX: usize = 11;

/// A socket that sends to, and receives from, anybody or its peer.
pub struct DatagramSocket {
    number: u64,
    options: CommonOptions,
    inbox: Inbox,
    outbox: Arc<Outbox>,
    filter: SocketFilter,
    pollee: Arc<Pollee>,
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
        let number = next_number();
        let pollee = Arc::new(Pollee::new());
        let socket = Arc::new_cyclic(|me| Self {
            number,
            options: CommonOptions::default(),
            inbox: Inbox::new(number),
            outbox: Outbox::new(pollee.clone()),
            filter: SocketFilter::default(),
            pollee,
            name: Spin::new(UnixAddress::Unnamed),
            peer: Spin::new(None),
            senders: Spin::new(Vec::new()),
            is_receiving_over: AtomicBool::new(false),
            is_sending_over: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
            maker: caller(),
            me: me.clone(),
            _held: Held::one(),
        });
        list::enter(socket.number, Node::Datagram(socket.me.clone()));
        socket
    }

    pub(super) fn pair() -> [Arc<Self>; 2] {
        let ends = [Self::new(), Self::new()];
        ends[0].set_peer(Some(&ends[1]));
        ends[1].set_peer(Some(&ends[0]));
        ends
    }

    /// The number of its file.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Throws away what it has received.
    pub(super) fn empty(&self) {
        self.inbox.clear();
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

    fn is_receiving_over(&self) -> bool {
        self.is_receiving_over.load(Ordering::SeqCst)
    }

    fn is_sending_over(&self) -> bool {
        self.is_sending_over.load(Ordering::SeqCst)
    }

    fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::SeqCst)
    }

    /// Whether a message of `sender` may lie here: those of our own peer, as many as it can pay.
    fn has_place_for(&self, sender: &Self) -> bool {
        self.inbox.messages() < MESSAGES_MAX || self.is_peer(sender) == Some(true)
    }

    /// Whether `other` is the peer, if there is one.
    fn is_peer(&self, other: &Self) -> Option<bool> {
        let peer = self.peer.lock();
        peer.as_ref().map(|peer| peer.ptr_eq(&other.me))
    }

    /// Whether `sender` may send here: a connected socket hears only its peer.
    fn accepts_from(&self, sender: &Self) -> bool {
        self.is_peer(sender) != Some(false)
    }

    fn target(&self, to: Option<&SocketAddress>) -> Result<Arc<Self>> {
        match to {
            Some(address) => names::find(unix_name(address)?, SocketType::Datagram)?.datagram(),
            None => self.peer().ok_or(Error::NotConnected)?,
        }
    }

    fn envelope(&self, target: &Self, control: Control) -> Result<Envelope> {
        let passes = |socket: &Self| socket.options.is_set(OptionName::PassCredentials);
        let is_wanted = passes(self) || passes(target);
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
        let how = self.options.send_wait(flags.blocking());
        loop {
            if self.is_sending_over() {
                return Err(broken(flags));
            }
            if target.is_closed() {
                return Err(Error::ConnectionRefused);
            }
            if target.is_receiving_over() {
                return Err(Error::BrokenPipe);
            }
            if !self.outbox.has_room() {
                let is_over = || self.is_sending_over();
                let may_go_on = || (is_over() || self.is_buffer_writable()).then_some(());
                wait_on(&self.pollee.queue, how, may_go_on)?;
            } else if !target.has_place_for(self) {
                let is_over = || target.is_receiving_over() || target.is_closed();
                let may_go_on = || (is_over() || target.has_place_for(self)).then_some(());
                wait_on(&target.pollee.queue, how, may_go_on)?;
            } else {
                let charge = self.outbox.charge(from.remaining());
                let sent = target
                    .inbox
                    .put_message(from, envelope, charge, &target.filter);
                target.pollee.notify(Events::READABLE);
                return sent;
            }
        }
    }

    fn is_buffer_writable(&self) -> bool {
        self.outbox.is_writable(self.outbox.charged())
    }

    /// A message was taken: senders may go on.
    fn tell_senders(&self) {
        self.pollee.queue.wake_all();
        let senders = self.senders.lock().clone();
        for sender in senders.iter().filter_map(Weak::upgrade) {
            sender.pollee.notify(Events::WRITABLE);
        }
    }

    /// What tools see of it.
    pub(super) fn facts(&self) -> UnixFacts {
        let peer = self.peer().and_then(Result::ok);
        UnixFacts {
            number: self.number,
            kind: SocketType::Datagram,
            state: match peer {
                Some(_) => UnixState::Connected,
                None => UnixState::Unconnected,
            },
            name: self.name.lock().clone(),
            waiting: self.inbox.len(),
            sent: self.outbox.charged(),
            peer: peer.map(|peer| peer.number),
        }
    }

    fn is_writable(&self) -> bool {
        let has_place = match self.peer() {
            Some(Ok(peer)) => peer.has_place_for(self),
            _ => true,
        };
        has_place && self.is_buffer_writable()
    }
}

impl Drop for DatagramSocket {
    fn drop(&mut self) {
        list::leave(self.number);
        names::release(self.name.get_mut(), SocketType::Datagram);
        self.tell_senders();
    }
}
