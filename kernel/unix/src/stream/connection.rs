//! What two connected sockets share.
//!
//! Side `s` takes from `sides[s].inbox`; its peer puts there. Each side's flags say what
//! it may still do; both sides may set them, and nobody clears them. Dropping a
//! [`Link`] closes its side.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, Ordering};

use mach::sync::Spin;
use sync::poll::{Events, Pollee};

use crate::inbox::Inbox;
use crate::outbox::Outbox;
use sockets::SocketFilter;
use vfs::socket::{PeerIdentity, UnixAddress};

/// What a side shares with the socket whose it is.
pub(super) struct Shared {
    /// The socket's number.
    pub(super) number: u64,
    pub(super) filter: Arc<SocketFilter>,
    pub(super) outbox: Arc<Outbox>,
    pub(super) pollee: Arc<Pollee>,
}

/// One end of a connection.
pub(super) struct Side {
    pub(super) inbox: Inbox,
    /// Nothing more will come in.
    is_receiving_over: AtomicBool,
    /// Nothing more may go out.
    is_sending_over: AtomicBool,
    /// The peer went without having read everything: reported once.
    was_reset: AtomicBool,
    /// Messages that come in carry who sent them.
    pub(super) wants_credentials: AtomicBool,
    pub(super) name: Spin<UnixAddress>,
    pub(super) program: PeerIdentity,
    pub(super) of: Shared,
}

impl Side {
    pub(super) fn new(
        of: Shared,
        name: UnixAddress,
        program: PeerIdentity,
        wants_credentials: bool,
    ) -> Self {
        Self {
            inbox: Inbox::new(of.number),
            is_receiving_over: AtomicBool::new(false),
            is_sending_over: AtomicBool::new(false),
            was_reset: AtomicBool::new(false),
            wants_credentials: AtomicBool::new(wants_credentials),
            name: Spin::new(name),
            program,
            of,
        }
    }

    pub(super) fn is_receiving_over(&self) -> bool {
        self.is_receiving_over.load(Ordering::SeqCst)
    }

    pub(super) fn is_sending_over(&self) -> bool {
        self.is_sending_over.load(Ordering::SeqCst)
    }

    /// Whether the peer reset the connection; true once.
    pub(super) fn take_reset(&self) -> bool {
        self.was_reset.load(Ordering::SeqCst) && self.was_reset.swap(false, Ordering::SeqCst)
    }

    pub(super) fn has_reset(&self) -> bool {
        self.was_reset.load(Ordering::SeqCst)
    }

    /// The peer hears that what it sent was not read.
    pub(super) fn reset(&self) {
        self.was_reset.store(true, Ordering::SeqCst);
    }

    /// Whether a sender that had to wait for its `peer` may go on.
    pub(super) fn may_write_to(&self, peer: &Self) -> bool {
        let charged = peer.inbox.len().max(self.of.outbox.charged());
        self.of.outbox.is_writable(charged) && peer.inbox.has_place() || self.is_sending_over()
    }

    pub(super) fn end_receiving(&self) {
        self.is_receiving_over.store(true, Ordering::SeqCst);
        self.notify(Events::READABLE | Events::RDHUP);
    }

    pub(super) fn end_sending(&self) {
        self.is_sending_over.store(true, Ordering::SeqCst);
        self.notify(Events::WRITABLE);
    }

    pub(super) fn notify(&self, events: Events) {
        self.of.pollee.notify(events);
    }
}

/// A socket's hold on its connection.
pub(super) struct Link {
    sides: Arc<[Side; 2]>,
    mine: usize,
}

impl Link {
    /// Connects two sides: a hold for each.
    pub(super) fn pair(sides: [Side; 2]) -> [Self; 2] {
        let sides = Arc::new(sides);
        [
            Self {
                sides: sides.clone(),
                mine: 0,
            },
            Self { sides, mine: 1 },
        ]
    }

    /// The side of the socket that asks.
    pub(super) fn own(&self) -> &Side {
        let [first, second] = &*self.sides;
        if self.mine == 0 { first } else { second }
    }

    /// The side of its peer.
    pub(super) fn peer(&self) -> &Side {
        let [first, second] = &*self.sides;
        if self.mine == 0 { second } else { first }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        let was_unread = self.own().inbox.clear();
        let peer = self.peer();
        if was_unread {
            peer.reset();
        }
        peer.end_sending();
        peer.end_receiving();
        peer.notify(Events::HUP | Events::ERR);
    }
}
