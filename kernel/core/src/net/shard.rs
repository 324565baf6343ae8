//! The stack and what it sees of the world: device, buffers, clock, waiting sockets.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use base::Instant;
use hal::FramePort;
use inet::{Env, RawPacket, SocketId, Stack};
use mach::sync::{Spin, SpinGuard};
use mbuf::{Chain, Mbuf, RxFrame, TxFrame};

use crate::error::{Error, Result};
use crate::packet;
use crate::poll::{Events, Pollee};

/// A device as the kernel holds it.
pub type Port = Box<dyn FramePort + Send>;

/// The stack's surroundings; see [`inet::Env`].
pub struct Link {
    now: Instant,
    pub(super) port: Option<Port>,
    /// Frames handed to the device since it was last told.
    pub(super) unannounced: u32,
    /// Whether the device will interrupt for the next frame.
    pub(super) is_doorbell_armed: bool,
    /// Frames between the device and the stack; empty but during a batch.
    pub(super) batch: Vec<RxFrame>,
    /// The device's queue was full: frames that were dropped, as a wire would.
    pub(super) queue_full_drops: u64,
    /// Who waits for a socket, by its slot; empty until the socket has an owner.
    waiters: Vec<Option<Arc<Pollee>>>,
}

/// One stack with its surroundings.
pub struct Shard {
    pub(super) stack: Stack,
    pub(super) link: Link,
}

static SHARD: Spin<Option<Shard>> = Spin::new(None);

/// Creates the stack; once at boot.
pub(super) fn init(config: inet::Config) {
    let link = Link {
        now: mach::time::now(),
        port: None,
        unannounced: 0,
        is_doorbell_armed: false,
        batch: Vec::new(),
        queue_full_drops: 0,
        waiters: Vec::new(),
    };
    let secret = [crate::random::next_u64(), crate::random::next_u64()];
    *SHARD.lock() = Some(Shard {
        stack: Stack::new(config, secret),
        link,
    });
}

/// Calls `work` with the stack and its surroundings; `None` before [`init`].
///
/// `work` must not block.
pub fn with_stack<R>(work: impl FnOnce(&mut Stack, &mut Link) -> R) -> Option<R> {
    let mut guard: SpinGuard<'_, Option<Shard>> = SHARD.lock();
    let shard = guard.as_mut()?;
    shard.link.now = mach::time::now();
    Some(work(&mut shard.stack, &mut shard.link))
}

/// A copy of the counters.
pub fn stats() -> Option<inet::Stats> {
    with_stack(|stack, _| stack.stats().clone())
}

impl Link {
    /// From now on `pollee` hears of `socket`.
    ///
    /// Errors: `NoBuffers`; the table is as large as the most sockets there ever were.
    pub(super) fn register(&mut self, socket: SocketId, pollee: Arc<Pollee>) -> Result<()> {
        let slot = socket.index();
        if self.waiters.len() <= slot {
            let more = slot + 1 - self.waiters.len();
            self.waiters
                .try_reserve(more)
                .map_err(|_| Error::NoBuffers)?;
            self.waiters.resize(slot + 1, None);
        }
        self.waiters[slot] = Some(pollee);
        Ok(())
    }

    /// Gives the card a frame that everybody has seen.
    #[inline]
    pub(super) fn hand_over(&mut self, frame: TxFrame) {
        let Some(port) = &mut self.port else { return };
        match port.transmit(frame) {
            Ok(()) => self.unannounced += 1,
            Err(_) => self.queue_full_drops += 1,
        }
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

    fn random(&mut self) -> u64 {
        crate::random::next_u64()
    }

    fn alloc(&mut self) -> Option<Mbuf> {
        super::packet_pool().alloc()
    }

    fn transmit(&mut self, frame: TxFrame) {
        packet::sent(&frame);
        self.hand_over(frame);
    }

    fn looped(&mut self, packet: &Chain) {
        packet::looped(packet);
    }

    fn raw(&mut self, packet: &RawPacket<'_>) -> bool {
        super::raw::show(packet)
    }

    fn wake(&mut self, socket: SocketId, events: inet::Events) {
        if let Some(Some(pollee)) = self.waiters.get(socket.index()) {
            pollee.notify(events_of(events));
        }
    }
}

/// The stack's words for readiness, in poll(2)'s.
pub(super) fn events_of(events: inet::Events) -> Events {
    const MAP: [(inet::Events, Events); 5] = [
        (inet::Events::READABLE, Events::READABLE),
        (inet::Events::WRITABLE, Events::WRITABLE),
        (inet::Events::READ_CLOSED, Events::RDHUP),
        (inet::Events::HANGUP, Events::HUP),
        (inet::Events::ERROR, Events::ERR),
    ];
    MAP.iter()
        .filter(|(theirs, _)| events.contains(*theirs))
        .fold(Events::empty(), |sum, (_, ours)| sum | *ours)
}
