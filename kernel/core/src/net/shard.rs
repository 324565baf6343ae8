//! The shards: stacks, and what each sees of the world.
//!
//! A shard is a stack of its own (`inet::Stack`: connections, ports, neighbours, timers)
//! behind a lock of its own. There is one until a card with several pairs of queues is
//! attached, then one for each pair; shard `n` belongs to CPU `n`, and CPUs beyond share.
//! Belonging means: that CPU polls the shard's ring, is interrupted for it, and runs its
//! timers. Any CPU may enter any shard for a program's call.
//!
//! Each connection is in one shard for all its life, the one that `steer` names. A socket
//! without a connection is in the first shard, where all names are (`handle`).
//!
//! Invariant: nobody holds the locks of two shards.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU16, AtomicU64, Ordering};

use base::Instant;
use hal::FramePort;
use inet::{Env, RawPacket, Share, SocketId, Stack};
use mach::cpu::MAX_CPUS;
use mach::sync::{Spin, SpinGuard};
use mbuf::{Chain, Mbuf, RxFrame, TxFrame};

use super::CARD;
use super::ring::{self, Ring};
use super::steer;
use crate::error::{Error, Result};
use crate::packet;
use crate::poll::{Events, Pollee};

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
    /// Which interface the port is.
    pub(super) interface: u32,
    now: Instant,
    pub(super) way: Way,
    /// Frames handed to the device since it was last told.
    pub(super) unannounced: u32,
    /// The alarm is set for them.
    pub(super) is_gathering: bool,
    /// A packet stayed within the machine and may have set a deadline.
    pub(super) has_looped: bool,
    /// The alarm is set for such deadlines.
    pub(super) is_loop_alarmed: bool,
    /// Whether the device will interrupt for the next frame, if it is this shard's own.
    pub(super) is_doorbell_armed: bool,
    /// Frames between the device and the stack; empty but during a batch.
    pub(super) batch: Vec<RxFrame>,
    /// The device's queue was full: frames that were dropped, as a wire would.
    pub(super) queue_full_drops: u64,
    /// Which version of the routes the stack has; of the first shard, which it published.
    pub(super) routes_version: u32,
    /// Who waits for a socket, by its slot; empty until the socket has an owner.
    waiters: Vec<Option<Arc<Pollee>>>,
}

/// One stack with its surroundings.
pub struct Shard {
    pub(super) stack: Stack,
    pub(super) link: Link,
}

/// A lock on cache lines of its own.
#[repr(align(128))]
struct Slot(Spin<Option<Shard>>);

static SHARDS: [Slot; MAX_CPUS] = [const { Slot(Spin::new(None)) }; MAX_CPUS];
static COUNT: AtomicU16 = AtomicU16::new(1);
/// The number of the next event in any stack's journal.
static EVENT_NUMBERS: AtomicU64 = AtomicU64::new(0);

/// Creates the first shard; once at boot.
pub(super) fn init(limits: inet::Config) {
    create(0, limits);
}

fn create(number: u16, limits: inet::Config) {
    let shard = Shard::new(CARD, number, limits);
    *SHARDS[usize::from(number)].0.lock() = Some(shard);
}

impl Shard {
    /// A stack without a way, for an interface.
    pub(super) fn new(interface: u32, number: u16, limits: inet::Config) -> Self {
        let link = Link {
            number,
            interface,
            now: mach::time::now(),
            way: Way::None,
            unannounced: 0,
            is_gathering: false,
            has_looped: false,
            is_loop_alarmed: false,
            is_doorbell_armed: false,
            batch: Vec::new(),
            queue_full_drops: 0,
            routes_version: 0,
            waiters: Vec::new(),
        };
        let secret = [crate::random::next_u64(), crate::random::next_u64()];
        let stack = Stack::new(limits, secret);
        Self { stack, link }
    }

    /// The stack and its surroundings, which are told the time.
    pub(super) fn enter(&mut self) -> (&mut Stack, &mut Link) {
        self.link.now = mach::time::now();
        (&mut self.stack, &mut self.link)
    }
}

/// Makes `count` shards in place of the first one, which nobody uses yet, with `limits`
/// each and the rings that were made for them; once, when the card is attached.
pub(super) fn split(count: u16, facts: inet::Port, limits: inet::Config) {
    for number in 0..count {
        create(number, limits);
        with_shard(number, |stack, link| {
            stack.attach(facts);
            stack.set_share(Share {
                number,
                owner_of: steer::owner_of_connection,
                event_numbers: &EVENT_NUMBERS,
            });
            link.way = ring::of_shard(number).map_or(Way::None, Way::Ring);
        });
    }
    COUNT.store(count, Ordering::Release);
}

/// How many shards there are: at least one, at most one for each CPU.
#[inline]
pub(super) fn count() -> u16 {
    COUNT.load(Ordering::Acquire)
}

/// The shard that belongs to this CPU.
#[inline]
pub(super) fn own() -> u16 {
    match count() {
        1 => 0,
        count => mach::cpu::id().0 as u16 % count,
    }
}

/// A shard that is ours for a while.
pub(super) struct Entered(SpinGuard<'static, Option<Shard>>);

impl Entered {
    /// Waits for a shard's lock, and tells it the time; `None` before [`init`].
    #[inline]
    pub(super) fn new(number: u16) -> Option<Self> {
        let mut entered = Self::to_look(number);
        entered.parts()?.1.now = mach::time::now();
        Some(entered)
    }

    /// Waits for a shard's lock, to look at what takes no time to change.
    #[inline]
    pub(super) fn to_look(number: u16) -> Self {
        Self(SHARDS[usize::from(number) % MAX_CPUS].0.lock())
    }

    /// The stack and its surroundings.
    #[inline]
    pub(super) fn parts(&mut self) -> Option<(&mut Stack, &mut Link)> {
        let shard = self.0.as_mut()?;
        Some((&mut shard.stack, &mut shard.link))
    }
}

/// Calls `work` with a stack and its surroundings; `None` before [`init`].
///
/// `work` must not block, nor enter another shard.
#[inline]
pub(super) fn with_shard<R>(
    number: u16,
    work: impl FnOnce(&mut Stack, &mut Link) -> R,
) -> Option<R> {
    let mut entered = Entered::new(number)?;
    let (stack, link) = entered.parts()?;
    Some(work(stack, link))
}

/// Calls `work` with the pair of queues of a shard, which it may exchange; `None` without one.
pub(super) fn with_port<R>(number: u16, work: impl FnOnce(&mut Port) -> R) -> Option<R> {
    let done = with_shard(number, |_, link| match &mut link.way {
        Way::None => None,
        Way::Own(port) => Some(work(port)),
        Way::Ring(ring) => Some(ring.with_port(work)),
    });
    done.flatten()
}

/// What `look` sees of each stack in turn.
pub fn each_stack<R>(mut look: impl FnMut(&Stack) -> R) -> Vec<R> {
    (0..count())
        .filter_map(|number| with_shard(number, |stack, _| look(stack)))
        .collect()
}

/// The first stack, which knows what all know: addresses, routes.
pub fn with_first_stack<R>(look: impl FnOnce(&Stack) -> R) -> Option<R> {
    with_shard(0, |stack, _| look(stack))
}

/// The last events of all stacks (`inet::Event`), the oldest first. Their numbers have no
/// gaps: older ones are left out where a stack has forgotten one.
pub fn journal() -> Vec<inet::Event> {
    // Those with lower numbers are in their journals when these are unlocked.
    let end = match count() {
        1 => u64::MAX,
        _ => EVENT_NUMBERS.load(Ordering::SeqCst),
    };
    let mut events = Vec::with_capacity(inet::JOURNAL_EVENTS_MAX * usize::from(count()));
    for number in 0..count() {
        with_shard(number, |stack, _| {
            events.extend(stack.journal().filter(|event| event.serial < end));
        });
    }
    events.sort_unstable_by_key(|event: &inet::Event| event.serial);
    let is_gap = |at: &usize| events[at - 1].serial + 1 != events[*at].serial;
    let first = (1..events.len()).rev().find(is_gap).unwrap_or(0);
    events.split_off(first)
}

/// The counters of all stacks together.
pub fn stats() -> inet::Stats {
    let mut sum = inet::Stats::default();
    for number in 0..count() {
        with_shard(number, |stack, _| sum.add(stack.stats()));
    }
    sum
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
        let is_sent = match &mut self.way {
            Way::None => return,
            Way::Own(port) => port.transmit(frame).is_ok(),
            Way::Ring(ring) => ring.transmit(frame),
        };
        match is_sent {
            true => self.unannounced += 1,
            false => self.queue_full_drops += 1,
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
        packet::sent(self.interface, &frame);
        self.hand_over(frame);
    }

    fn looped(&mut self, packet: &Chain) {
        self.has_looped = true;
        packet::looped(packet);
    }

    fn raw(&mut self, packet: &RawPacket<'_>) -> bool {
        super::raw::show(self.interface, packet)
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
