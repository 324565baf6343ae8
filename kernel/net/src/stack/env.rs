//! What a stack sees of the world: the clock, packet buffers, its port, who waits.
//!
//! Frames reach the card by a port that is the shard's own where there is one shard, and by
//! the lock of a ring otherwise. Sniffers see each frame before.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;

use base::{CPUS_MAX, Duration, Instant};
use hal::FramePort;
use inet::{Env, RawPacket, SocketId};
use mbuf::{Chain, Mbuf, RxFrame, TxFrame};
use sync::poll::Events;
use sync::{Error, Result};

use super::waiter::Waiter;
use super::wake::Wake;
use super::{NetStack, Shared};
use crate::device::alarm::Alarm;
use crate::device::pair::Pair;
use crate::device::poll::await_room;
use crate::device::pulls::Pulls;
use crate::device::reception;
use crate::device::ring::Ring;
use crate::device::watchdog;
use crate::packet;
use link::tx_batch::TxBatch;
use wire::MacAddr;

/// A device as the kernel holds it.
pub type Port = Box<dyn FramePort + Send>;

/// How a shard's frames reach the card.
pub(crate) enum Attachment {
    /// There is none.
    None,
    /// The only shard has the card for itself, and needs no lock but its own.
    Own(Pair),
    /// One of several.
    Ring(&'static Ring),
}

/// The stack's environment; see [`inet::Env`].
pub struct Link {
    /// Which shard this is.
    pub number: u16,
    /// Whether a CPU polls it.
    pub(crate) is_polled: bool,
    /// Whose shard it is.
    pub(crate) stack: Weak<NetStack>,
    pub(crate) shared: Arc<Shared>,
    /// Which interface the port is.
    pub interface: u32,
    pub(crate) alarm: Alarm,
    pub(crate) now: Instant,
    pub(crate) attachment: Attachment,
    /// Frames handed to the device, if it is this shard's own.
    tx: TxBatch,
    /// A packet stayed within the machine and may have set a deadline.
    pub(crate) has_looped: bool,
    /// The alarm is set for such deadlines.
    pub(crate) is_loop_alarmed: bool,
    /// Whether the device will interrupt for the next frame, if it is this shard's own.
    pub(crate) is_doorbell_armed: bool,
    /// What was taken from the device, if it is this shard's own.
    pub(crate) pulls: Pulls,
    /// Frames that went through the stack, by the CPU that took them.
    taken: [u64; CPUS_MAX],
    /// Frames between the device and the stack; empty but during a batch.
    pub(crate) batch: VecDeque<RxFrame>,
    /// Too many frames waited for the device's queue: those that were dropped.
    pub(crate) queue_full_drops: u64,
    /// Which version of the routes the stack has; of the first shard, which it published.
    pub(crate) routes_version: u32,
    /// Which version of its addresses and routes the other shards know ([`super::egress`]).
    pub(crate) egress_version: u32,
    /// Whether its interface has an address that sockets may wait for.
    pub(crate) has_new_address: bool,
    /// The wake-up of this call, for when the lock is free ([`super::wake`]).
    pub(super) wake: Option<Wake>,
    /// Whether it is kept.
    pub(super) keeps_wake: bool,
    /// Who waits for a socket, by its slot; empty until the socket has an owner.
    waiters: Vec<Option<Arc<Waiter>>>,
}

impl Link {
    /// The environment of a shard of `of`, without a port.
    pub(crate) fn new(of: &NetStack, interface: u32, number: u16) -> Self {
        Self {
            number,
            is_polled: of.is_first() && number < of.count(),
            stack: of.downgrade(),
            shared: of.shared.clone(),
            alarm: Alarm::new(),
            interface,
            now: mach::time::now(),
            attachment: Attachment::None,
            tx: TxBatch::new(),
            has_looped: false,
            is_loop_alarmed: false,
            is_doorbell_armed: false,
            pulls: Pulls::default(),
            taken: [0; CPUS_MAX],
            batch: VecDeque::new(),
            queue_full_drops: 0,
            routes_version: 0,
            egress_version: 0,
            has_new_address: false,
            wake: None,
            keeps_wake: true,
            waiters: Vec::new(),
        }
    }

    /// This CPU took so many frames through the stack.
    #[inline]
    pub(crate) fn count_taken(&mut self, frames: usize) {
        if let Some(taken) = self.taken.get_mut(mach::cpu::id().index()) {
            *taken += frames as u64;
        }
    }

    /// Frames that went through the stack, by the machine's CPUs.
    pub(crate) fn taken(&self) -> impl Iterator<Item = u64> + '_ {
        self.taken.iter().copied().take(mach::cpu::count())
    }

    /// From now on `waiter` hears of `socket`.
    ///
    /// Errors: `NoBuffers`; the table is as large as the most sockets there ever were.
    pub fn register(&mut self, socket: SocketId, waiter: Arc<Waiter>) -> Result<()> {
        let slot = socket.index();
        if self.waiters.len() <= slot {
            let more = slot + 1 - self.waiters.len();
            self.waiters
                .try_reserve(more)
                .map_err(|_| Error::NoBuffers)?;
            self.waiters.resize(slot + 1, None);
        }
        self.waiters[slot] = Some(waiter);
        Ok(())
    }

    /// Gives the card a frame that everybody has seen.
    #[inline]
    pub(crate) fn hand_over(&mut self, frame: TxFrame) {
        let is_sent = match &mut self.attachment {
            Attachment::None => return,
            Attachment::Own(pair) => {
                let is_sent = pair.transmit(frame).is_ok();
                if is_sent {
                    self.tx.note_sent();
                }
                is_sent
            }
            Attachment::Ring(ring) => ring.transmit(frame),
        };
        self.queue_full_drops += u64::from(!is_sent);
        if self.has_waiting() {
            await_room(self);
        }
    }

    /// Frames that a port of a link had no room for.
    pub(crate) fn port_drops(&mut self) -> u64 {
        match &mut self.attachment {
            Attachment::Own(pair) if !self.is_polled => pair.port().counters().rx_ring_empty,
            _ => 0,
        }
    }

    /// Has the port of a link bring all frames that the link may see, or no longer.
    pub(crate) fn listen_to_all(&mut self, on: bool) {
        if let Attachment::Own(pair) = &mut self.attachment {
            pair.port().listen_to_all(on);
        }
    }

    /// Frames that the device was given.
    #[inline]
    pub(crate) fn tx(&self) -> &TxBatch {
        match &self.attachment {
            Attachment::Ring(ring) => ring.tx(),
            Attachment::Own(_) | Attachment::None => &self.tx,
        }
    }

    /// Whether frames wait for the device's room: [`announce`](Self::announce) is to be called again.
    #[inline]
    pub(crate) fn has_waiting(&self) -> bool {
        match &self.attachment {
            Attachment::Own(pair) => pair.waiting() != 0,
            Attachment::Ring(ring) => ring.has_waiting(),
            Attachment::None => false,
        }
    }

    /// Tells the device about the frames that it was given, and of those that it has room for by then.
    pub(crate) fn announce(&mut self) {
        match &mut self.attachment {
            Attachment::Own(pair) => {
                if pair.flush() | self.tx.announce() {
                    pair.kick();
                    watchdog::kicked();
                }
            }
            Attachment::None => {}
            Attachment::Ring(ring) => ring.announce(),
        }
    }

    /// The number of a socket's file; 0 while nobody holds it.
    pub fn number_of(&self, socket: SocketId) -> u64 {
        let waiter = self.waiters.get(socket.index()).and_then(Option::as_ref);
        waiter.map_or(0, |waiter| waiter.number)
    }

    /// Who waits for `socket`.
    pub fn waiter_of(&self, socket: SocketId) -> Option<&Arc<Waiter>> {
        self.waiters.get(socket.index())?.as_ref()
    }

    /// Nobody holds `socket` any more.
    pub fn unregister(&mut self, socket: SocketId) {
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
        random::next_u64()
    }

    fn alloc(&mut self) -> Option<Mbuf> {
        crate::device::memory::packet_pool().alloc()
    }

    fn alloc_to_queue(&mut self) -> Option<Mbuf> {
        crate::device::memory::alloc_to_queue()
    }

    fn is_heap_short(&self) -> bool {
        mach::mem::is_short()
    }

    fn is_scarce(&self) -> bool {
        crate::device::memory::is_scarce()
    }

    fn transmit(&mut self, frame: TxFrame) {
        packet::sent(&self.shared, self.interface, &frame);
        self.hand_over(frame);
    }

    fn group(&mut self, station: MacAddr, is_member: bool) {
        reception::group(station, is_member);
    }

    fn looped(&mut self, packet: &Chain) {
        self.has_looped = true;
        packet::looped(&self.shared, packet);
    }

    fn raw(&mut self, packet: &RawPacket<'_>) -> bool {
        super::raw_listener::show(&self.shared, self.interface, packet)
    }

    fn filter(&mut self, socket: SocketId, headers: &[u8], packet: &Chain) -> usize {
        match self.waiters.get(socket.index()) {
            Some(Some(waiter)) => {
                super::filter::keep(waiter, &self.shared, self.interface, headers, packet)
            }
            _ => usize::MAX,
        }
    }

    #[inline]
    fn wake(&mut self, socket: SocketId, events: inet::Events) {
        if let Some(Some(waiter)) = self.waiters.get(socket.index()) {
            waiter.note(self.number, events);
            match self.keeps_wake {
                true => Wake::keep(&mut self.wake, waiter, events),
                false => waiter.notify(events),
            }
        }
    }
}

/// The stack's words for readiness, in poll(2)'s.
pub fn events_of(events: inet::Events) -> Events {
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
