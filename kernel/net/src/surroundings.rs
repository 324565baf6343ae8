//! What a stack sees of the world: the clock, packet buffers, its port, who waits.
//!
//! Frames reach the card by a way that is the shard's own where there is one shard, and by
//! the lock of a ring otherwise. Sniffers see each frame before.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;

use base::{Duration, Instant};
use hal::FramePort;
use inet::{Env, RawPacket, SocketId};
use mbuf::{Chain, Mbuf, RxFrame, TxFrame};
use sync::poll::Events;
use sync::{Error, Result};

use super::alarm::Alarm;
use super::notice::Notice;
use super::ring::Ring;
use super::stack::{NetStack, Shared};
use super::watchdog;
use crate::packet;
use link::tx_batch::TxBatch;

/// A device as the kernel holds it.
pub type Port = Box<dyn FramePort + Send>;

/// How a shard's frames reach the card.
pub(super) enum Way {
    /// There is none.
    None,
    /// The only shard has the card for itself, and needs no lock but its own.
    Own(Port),
    /// One of several.
    Ring(&'static Ring),
}

/// The stack's surroundings; see [`inet::Env`].
pub struct Link {
    /// Which shard this is.
    pub(super) number: u16,
    /// Whether a CPU polls it.
    pub(super) is_polled: bool,
    /// Whose shard it is.
    pub(super) stack: Weak<NetStack>,
    pub(super) shared: Arc<Shared>,
    /// Which interface the port is.
    pub(super) interface: u32,
    pub(super) alarm: Alarm,
    pub(super) now: Instant,
    pub(super) way: Way,
    /// Frames handed to the device, if it is this shard's own.
    tx: TxBatch,
    /// A packet stayed within the machine and may have set a deadline.
    pub(super) has_looped: bool,
    /// The alarm is set for such deadlines.
    pub(super) is_loop_alarmed: bool,
    /// Whether the device will interrupt for the next frame, if it is this shard's own.
    pub(super) is_doorbell_armed: bool,
    /// Frames between the device and the stack; empty but during a batch.
    pub(super) batch: VecDeque<RxFrame>,
    /// The device's queue was full: frames that were dropped, as a wire would.
    pub(super) queue_full_drops: u64,
    /// Which version of the routes the stack has; of the first shard, which it published.
    pub(super) routes_version: u32,
    /// Who waits for a socket, by its slot; empty until the socket has an owner.
    waiters: Vec<Option<Arc<Notice>>>,
}

impl Link {
    /// The surroundings of a shard of `of`, without a port.
    pub(super) fn new(of: &NetStack, interface: u32, number: u16) -> Self {
        Self {
            number,
            is_polled: of.is_first() && number < of.count(),
            stack: of.downgrade(),
            shared: of.shared.clone(),
            alarm: Alarm::new(),
            interface,
            now: mach::time::now(),
            way: Way::None,
            tx: TxBatch::new(),
            has_looped: false,
            is_loop_alarmed: false,
            is_doorbell_armed: false,
            batch: VecDeque::new(),
            queue_full_drops: 0,
            routes_version: 0,
            waiters: Vec::new(),
        }
    }

    /// From now on `notice` hears of `socket`.
    ///
    /// Errors: `NoBuffers`; the table is as large as the most sockets there ever were.
    pub(super) fn register(&mut self, socket: SocketId, notice: Arc<Notice>) -> Result<()> {
        let slot = socket.index();
        if self.waiters.len() <= slot {
            let more = slot + 1 - self.waiters.len();
            self.waiters
                .try_reserve(more)
                .map_err(|_| Error::NoBuffers)?;
            self.waiters.resize(slot + 1, None);
        }
        self.waiters[slot] = Some(notice);
        Ok(())
    }

    /// Gives the card a frame that everybody has seen.
    #[inline]
    pub(super) fn hand_over(&mut self, frame: TxFrame) {
        let is_sent = match &mut self.way {
            Way::None => return,
            Way::Own(port) => {
                let is_sent = port.transmit(frame).is_ok();
                if is_sent {
                    self.tx.note_sent();
                }
                is_sent
            }
            Way::Ring(ring) => ring.transmit(frame),
        };
        self.queue_full_drops += u64::from(!is_sent);
    }

    /// Frames that the device was given.
    #[inline]
    pub(super) fn tx(&self) -> &TxBatch {
        match &self.way {
            Way::Ring(ring) => ring.tx(),
            Way::Own(_) | Way::None => &self.tx,
        }
    }

    /// Tells the device about the frames that it was given.
    pub(super) fn announce(&mut self) {
        match &mut self.way {
            Way::Own(port) if self.tx.announce() => {
                port.kick();
                watchdog::kicked();
            }
            Way::Own(_) | Way::None => {}
            Way::Ring(ring) => ring.announce(),
        }
    }

    /// The number of a socket's file; 0 while nobody holds it.
    pub(super) fn number_of(&self, socket: SocketId) -> u64 {
        let waiter = self.waiters.get(socket.index()).and_then(Option::as_ref);
        waiter.map_or(0, |waiter| waiter.number)
    }

    /// Nobody holds `socket` any more.
    pub(super) fn unregister(&mut self, socket: SocketId) {
        if let Some(slot) = self.waiters.get_mut(socket.index()) {
            *slot = None;
        }
    }
}

impl Env for Link {
    fn now(&self) -> Instant {
        self.now
    }

    fn spent(&self) -> Duration {
        mach::time::now().since(self.now)
    }

    fn random(&mut self) -> u64 {
        kernel::random::next_u64()
    }

    fn alloc(&mut self) -> Option<Mbuf> {
        super::packet_pool().alloc()
    }

    fn alloc_to_queue(&mut self) -> Option<Mbuf> {
        super::memory::alloc_to_queue()
    }

    fn is_heap_short(&self) -> bool {
        mach::mem::is_short()
    }

    fn is_scarce(&self) -> bool {
        super::memory::is_scarce()
    }

    fn transmit(&mut self, frame: TxFrame) {
        packet::sent(&self.shared, self.interface, &frame);
        self.hand_over(frame);
    }

    fn looped(&mut self, packet: &Chain) {
        self.has_looped = true;
        packet::looped(&self.shared, packet);
    }

    fn raw(&mut self, packet: &RawPacket<'_>) -> bool {
        super::raw::show(&self.shared, self.interface, packet)
    }

    fn filter(&mut self, socket: SocketId, headers: &[u8], packet: &Chain) -> usize {
        match self.waiters.get(socket.index()) {
            Some(Some(notice)) => {
                super::filter::keep(notice, &self.shared, self.interface, headers, packet)
            }
            _ => usize::MAX,
        }
    }

    fn wake(&mut self, socket: SocketId, events: inet::Events) {
        if let Some(Some(notice)) = self.waiters.get(socket.index()) {
            notice.tell(events);
        }
    }
}

/// The stack's words for readiness, in poll(2)'s.
pub(super) fn events_of(events: inet::Events) -> Events {
    const MAP: [(inet::Events, Events); 6] = [
        (inet::Events::READABLE, Events::READABLE),
        (inet::Events::WRITABLE, Events::WRITABLE),
        (inet::Events::READ_CLOSED, Events::RDHUP),
        (inet::Events::HANGUP, Events::HUP),
        (inet::Events::ERROR, Events::ERR),
        (inet::Events::FAILURE, Events::ERR),
    ];
    MAP.iter()
        .filter(|(theirs, _)| events.contains(*theirs))
        .fold(Events::empty(), |sum, (_, ours)| sum | *ours)
}
