//! Unix sockets without connections: datagrams.
//!
//! A sender puts its message into the receiver's inbox; it waits while its own send buffer is
//! full, and on the receiver while many messages lie there. A connected sender's readiness for
//! writing depends on the receiver, which therefore knows the senders that are connected to it.
//!
//! Who gets another peer, or finds that its own is gone and with that has none, loses what it has
//! received; the old peer, if it was connected to it, hears of an error, as in Linux.

mod socket;

use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};

use mach::sync::Spin;
use mm::io::Source;
use sync::poll::{Events, Pollee};
use sync::{Error, Result};

use crate::endpoint::Endpoint;
use crate::inbox::{Ancillary, Inbox};
use crate::names::unix_name;
use crate::outbox::Outbox;
use crate::{list, names};
use sockets::{CommonOptions, Held, PeekOffset, SocketFilter};
use sockets::{UnixFacts, UnixState};
use vfs::file::next_number;
use vfs::socket::{
    Control, MessageFlags, OptionName, PeerIdentity, SocketAddress, SocketType, UnixAddress,
};

/// Messages that wait at most for who is not the senders' peer (net.unix.max_dgram_qlen, and one
/// more as in Linux).
const MESSAGES_MAX: usize = 11;

/// A socket that sends to, and receives from, anybody or its peer.
pub struct DatagramSocket {
    number: u64,
    options: CommonOptions,
    peek_offset: PeekOffset,
    inbox: Inbox,
    outbox: Arc<Outbox>,
    filter: SocketFilter,
    pollee: Arc<Pollee>,
    name: Spin<UnixAddress>,
    peer: Spin<Option<Weak<DatagramSocket>>>,
    /// Sockets connected to this one.
    senders: Spin<Vec<Weak<DatagramSocket>>>,
    /// Its peer has left it: reported once.
    was_left: AtomicBool,
    is_receiving_over: AtomicBool,
    is_sending_over: AtomicBool,
    /// Its last descriptor is gone; senders that wait keep it alive.
    is_closed: AtomicBool,
    /// Of a pair: who made it.
    maker: PeerIdentity,
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
            peek_offset: PeekOffset::default(),
            inbox: Inbox::new(number),
            outbox: Outbox::new(pollee.clone()),
            filter: SocketFilter::default(),
            pollee,
            name: Spin::new(UnixAddress::Unnamed),
            peer: Spin::new(None),
            senders: Spin::new(Vec::new()),
            was_left: AtomicBool::new(false),
            is_receiving_over: AtomicBool::new(false),
            is_sending_over: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
            maker: sockets::current_identity(),
            me: me.clone(),
            _held: Held::one(),
        });
        list::enter(socket.number, socket.me.clone());
        socket
    }

    pub(super) fn pair() -> [Arc<Self>; 2] {
        let ends = [Self::new(), Self::new()];
        ends[0].set_peer(Some(&ends[1]));
        ends[1].set_peer(Some(&ends[0]));
        ends
    }

    /// Connects to `peer` and to nobody else.
    fn set_peer(&self, peer: Option<&Arc<Self>>) {
        let old = core::mem::replace(&mut *self.peer.lock(), peer.map(Arc::downgrade));
        if let Some(peer) = peer {
            let mut senders = peer.senders.lock();
            senders.retain(|sender| sender.strong_count() != 0);
            senders.push(self.me.clone());
        }
        if let Some(old) = old {
            self.leave(&old);
        }
    }

    /// The peer was `old` so far.
    fn leave(&self, old: &Weak<Self>) {
        if self.peer.lock().as_ref().is_some_and(|now| now.ptr_eq(old)) {
            return;
        }
        if self.inbox.clear() {
            self.tell_senders();
        }
        let Some(old) = old.upgrade() else { return };
        old.senders.lock().retain(|sender| !sender.ptr_eq(&self.me));
        if !old.is_closed() && old.is_peer(self) == Some(true) {
            old.was_left.store(true, Ordering::SeqCst);
            old.pollee.notify(Events::ERR);
        }
    }

    /// Its peer is gone: it has none any more, if that is still the one.
    fn forget(&self, gone: &Weak<Self>) {
        let mut peer = self.peer.lock();
        if peer.as_ref().is_some_and(|peer| peer.ptr_eq(gone)) {
            *peer = None;
            drop(peer);
            self.leave(gone);
        }
    }

    /// The peer.
    ///
    /// Errors: `NotConnected` if there is none; `ConnectionRefused` if it is gone, which is said
    /// once.
    fn peer(&self) -> Result<Arc<Self>> {
        let peer = self.peer.lock().clone().ok_or(Error::NotConnected)?;
        let found = peer.upgrade().filter(|peer| !peer.is_closed());
        if found.is_none() {
            self.forget(&peer);
        }
        found.ok_or(Error::ConnectionRefused)
    }

    /// The peer, gone or not.
    fn known_peer(&self) -> Option<Weak<Self>> {
        self.peer.lock().clone()
    }

    /// What the peer has done, once.
    fn take_error(&self) -> Option<Error> {
        let was_left = self.was_left.load(Ordering::SeqCst);
        (was_left && self.was_left.swap(false, Ordering::SeqCst)).then_some(Error::ConnectionReset)
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
            Some(address) => names::find(unix_name(address)?, SocketType::Datagram),
            None => self.peer(),
        }
    }

    fn ancillary(&self, target: &Self, control: Control) -> Result<Ancillary> {
        let passes = |socket: &Self| socket.options.is_set(OptionName::PassCredentials);
        let is_wanted = passes(self) || passes(target);
        let mut ancillary = Ancillary::new(control, is_wanted)?;
        ancillary.from =
            Some(self.name.lock().clone()).filter(|name| *name != UnixAddress::Unnamed);
        Ok(ancillary)
    }

    fn deliver(
        &self,
        target: &Self,
        from: &mut Source<'_>,
        ancillary: Ancillary,
        flags: MessageFlags,
    ) -> Result<usize> {
        let how = self.options.send_wait(flags.blocking());
        loop {
            if let Some(error) = self.take_error() {
                return Err(error);
            }
            if self.is_sending_over() {
                return Err(Error::BrokenPipe);
            }
            if target.is_closed() {
                self.forget(&target.me);
                return Err(Error::ConnectionRefused);
            }
            if target.is_receiving_over() {
                return Err(Error::BrokenPipe);
            }
            if !self.outbox.has_room() {
                let is_over = || self.is_sending_over();
                let may_go_on = || (is_over() || self.is_buffer_writable()).then_some(());
                self.pollee
                    .queue
                    .wait(how.ok_or(Error::WouldBlock)?, may_go_on)?;
            } else if !target.has_place_for(self) {
                let is_over = || target.is_receiving_over() || target.is_closed();
                let may_go_on = || (is_over() || target.has_place_for(self)).then_some(());
                target
                    .pollee
                    .queue
                    .wait(how.ok_or(Error::WouldBlock)?, may_go_on)?;
            } else {
                let charge = self.outbox.charge(from.remaining());
                let sent = target
                    .inbox
                    .put_message(from, ancillary, charge, &target.filter);
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

    fn is_writable(&self) -> bool {
        let peer = self.known_peer().and_then(|peer| peer.upgrade());
        let has_place = peer.is_none_or(|peer| peer.has_place_for(self));
        has_place && self.is_buffer_writable()
    }
}

impl Endpoint for DatagramSocket {
    fn empty(&self) {
        self.inbox.clear();
    }

    fn facts(&self) -> UnixFacts {
        let peer = self.known_peer().and_then(|peer| peer.upgrade());
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
}

impl Drop for DatagramSocket {
    fn drop(&mut self) {
        list::leave(self.number);
        names::release(self.name.get_mut(), SocketType::Datagram);
        self.tell_senders();
    }
}
