//! Unix sockets without connections: datagrams.
//!
//! A sender puts its message into the receiver's inbox; it waits on the receiver while
//! that is full. A connected sender's readiness for writing depends on the receiver, which
//! therefore knows the senders that are connected to it.

mod socket;

use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};

use mach::sync::Spin;

use super::inbox::{Envelope, Inbox};
use super::list::{self, UnixFacts, UnixState};
use super::names::{self, Node};
use super::{caller, unix_name};
use crate::error::{Error, Result};
use crate::io::Source;
use crate::ipc::next_number;
use crate::poll::{Events, Pollee};
use crate::socket::{
    CommonOptions, Control, Held, MessageFlags, OptionName, PeerCredentials, SocketAddress,
    SocketType, UnixAddress, wait_on,
};

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
        let number = next_number();
        let socket = Arc::new_cyclic(|me| Self {
            number,
            options: CommonOptions::default(),
            inbox: Inbox::new(number),
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
        let size = from.remaining();
        let mut envelope = Some(envelope);
        loop {
            if target.is_closed() {
                return Err(Error::ConnectionRefused);
            }
            if target.is_receiving_over() {
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
                let is_over = target.is_receiving_over() || target.is_closed();
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
            sent: peer.as_ref().map_or(0, |peer| peer.inbox.len()),
            peer: peer.map(|peer| peer.number),
        }
    }

    fn is_writable(&self) -> bool {
        match self.peer() {
            Some(Ok(peer)) => peer.has_room_for(0),
            _ => true,
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
