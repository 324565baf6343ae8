//! The card's pairs of queues where there are several shards.
//!
//! Each pair has a lock of its own, taken for a few instructions: the shard's CPU receives
//! by it, and whoever works for the shard sends by it. Shard `n` has pair `n`. The card is told
//! of frames without the shard's lock, unless its room has run out: that may take as long as the host likes. Which CPU runs the
//! shard is said by `runners`.
//!
//! The rings are the machine's, not a stack's: they are those of the one physical card, which
//! the first stack has.
//!
//! What is received is sorted by [`link::steer`] and handed over in `inbox`, never taken
//! through a stack here. Lock order: a shard, then a ring, then a queue of an inbox.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

use hal::PortCounters;
use link::RxChain;
use link::dispatch::{self, Dispatch};
use link::rss::Indirection;
use link::steer::{Fanout, Steering};
use linkctl::RingCounts;
use mach::sync::{Once, Spin};
use mbuf::{RxFrame, TxFrame};

use super::moderation;
use super::pair::Pair;
use super::poll::BATCH_FRAMES_MAX;
use super::pulls::Pulls;
use super::{inbox, runners, steer, watchdog};
use crate::packet;
use crate::stack::env::Port;
use crate::stack::{self, Shared};
use link::tx_batch::TxBatch;

/// What a ring did and dropped.
#[derive(Clone, Copy, Default, Debug)]
pub struct RingCounters {
    /// Frames received.
    pub received: u64,
    /// Of them, those for other shards than the ring's own.
    pub handed_over: u64,
    /// Frames sent.
    pub sent: u64,
    /// Dropped: the shard that they were for had too many.
    pub soft_ring_full: u64,
    /// Dropped: fragments of TCP segments.
    pub tcp_fragments: u64,
}

/// One pair of queues.
pub(crate) struct Ring {
    number: u16,
    state: Spin<State>,
    /// Frames handed to the card.
    tx: TxBatch,
    /// Whether frames wait for the card's room, for who only looks; changes under the lock.
    has_waiting: AtomicBool,
    /// Of the stack whose card it is.
    shared: Arc<Shared>,
}

struct State {
    pair: Pair,
    steering: Steering,
    /// Between the card and the steering; empty but during a batch.
    batch: RxChain,
    is_armed: bool,
    pulls: Pulls,
    counters: RingCounters,
}

/// So many frames of one ring make it worth to look who runs its shard.
const MANY_FRAMES: u64 = 256;

/// The card's, which is the machine's.
static RINGS: Once<Box<[Ring]>> = Once::new();

/// Makes rings of the card's pairs, one for each shard; once, after `inbox::init`.
pub(crate) fn init(ports: Vec<Port>, shards: u16) {
    RINGS.call_once(|| {
        let ring = |(number, port)| Ring::new(number, port, shards);
        (0..).zip(ports).map(ring).collect()
    });
}

/// The pair of `shard`; `None` where there is one shard.
pub(crate) fn of_shard(shard: u16) -> Option<&'static Ring> {
    RINGS.get()?.get(usize::from(shard))
}

/// Tells the card of what a shard gave it, if the shard has a ring.
pub(crate) fn announce(shard: u16) {
    if let Some(ring) = of_shard(shard) {
        ring.announce();
        ring.tx.rest();
    }
}

/// What each ring counted. A card of the only shard counts nothing itself; what the shard
/// did says the same.
pub fn ring_counters() -> Vec<RingCounters> {
    let stack = stack::first();
    if stack.count() == 1 {
        let stats = stack.stats();
        return vec![RingCounters {
            received: stats.counts.get(inet::Count::FramesIn),
            sent: stats.counts.get(inet::Count::FramesOut),
            ..RingCounters::default()
        }];
    }
    RINGS
        .get()
        .into_iter()
        .flatten()
        .map(Ring::counters)
        .collect()
}

/// What the driver counted at each of the card's pairs of queues.
pub fn port_counters() -> Vec<PortCounters> {
    let stack = stack::first();
    (0..stack.count())
        .filter_map(|ring| stack.with_pair(ring, |pair, _| pair.port().counters()))
        .collect()
}

/// All that is counted of each pair of queues.
pub(crate) fn pair_counts() -> Vec<RingCounts> {
    let stack = stack::first();
    let pair = |number| {
        let look = |pair: &mut Pair, pulls: &mut Pulls| {
            let counters = pair.port().counters();
            (counters, pulls.counts().clone())
        };
        let (port, pulled) = stack.with_pair(number, look)?;
        let (fanout, counters) = of_shard(number).map(Ring::fanout).unwrap_or_default();
        Some(RingCounts {
            port,
            pulled,
            spacing_ns: moderation::spacing_ns(number),
            cpu: runners::cpu_of(number).map(|cpu| cpu.0),
            fanout,
            soft_ring_drops: counters.soft_ring_full,
            tcp_fragments: counters.tcp_fragments,
        })
    };
    (0..stack.count()).filter_map(pair).collect()
}

impl Ring {
    fn new(number: u16, port: Port, shards: u16) -> Self {
        let mut steering = Steering::new(&steer::rss(), inbox::progress(number));
        steering.resteer(Indirection::even(shards));
        Self {
            number,
            state: Spin::new(State {
                pair: Pair::of_card(port),
                steering,
                batch: RxChain::new(),
                is_armed: false,
                pulls: Pulls::default(),
                counters: RingCounters::default(),
            }),
            tx: TxBatch::new(),
            has_waiting: AtomicBool::new(false),
            shared: stack::first().shared.clone(),
        }
    }

    /// Takes a batch from the card and hands it over; true if there may be more.
    pub(crate) fn pull(&self) -> bool {
        let mut state = self.state.lock();
        let count = state.receive(&self.shared);
        state.spread(self.number);
        count == BATCH_FRAMES_MAX
    }

    /// Gives the card a frame, or has it wait for room; false if too many do.
    #[inline]
    pub(crate) fn transmit(&self, frame: TxFrame) -> bool {
        let mut state = self.state.lock();
        let is_sent = state.pair.transmit(frame).is_ok();
        state.counters.sent += u64::from(is_sent);
        self.note_waiting(&state.pair);
        if is_sent {
            self.tx.note_sent();
        }
        is_sent
    }

    /// Calls `work` with the pair and what was taken from it.
    pub(crate) fn with_pair<R>(&self, work: impl FnOnce(&mut Pair, &mut Pulls) -> R) -> R {
        let State { pair, pulls, .. } = &mut *self.state.lock();
        work(pair, pulls)
    }

    /// Frames that the card was given.
    #[inline]
    pub(crate) fn tx(&self) -> &TxBatch {
        &self.tx
    }

    /// Tells the card of what it was given, and of what it has room for by then.
    pub(crate) fn announce(&self) {
        if self.tx.unannounced() != 0 || self.has_waiting() {
            let mut state = self.state.lock();
            if state.pair.flush() | self.tx.announce() {
                state.pair.kick();
                watchdog::kicked();
            }
            self.note_waiting(&state.pair);
        }
    }

    /// Whether frames wait for the card's room.
    #[inline]
    pub(crate) fn has_waiting(&self) -> bool {
        self.has_waiting.load(Relaxed)
    }

    #[inline]
    fn note_waiting(&self, pair: &Pair) {
        let has_waiting = pair.waiting() != 0;
        if has_waiting != self.has_waiting() {
            self.has_waiting.store(has_waiting, Relaxed);
        }
    }

    pub(crate) fn unsent(&self) -> usize {
        self.state.lock().pair.unsent()
    }

    /// Asks for no interrupt and says whether frames are there.
    pub(crate) fn poll(&self) -> bool {
        let mut state = self.state.lock();
        if state.is_armed {
            state.is_armed = false;
            state.pair.disarm();
        }
        state.pair.has_received()
    }

    /// Asks for an interrupt; false if frames are there already.
    pub(crate) fn arm(&self) -> bool {
        let mut state = self.state.lock();
        state.is_armed = !state.pair.arm();
        state.is_armed
    }

    /// Whether the next frame interrupts.
    pub(crate) fn is_armed(&self) -> bool {
        self.state.lock().is_armed
    }

    /// Frames received.
    pub(super) fn received(&self) -> u64 {
        self.state.lock().counters.received
    }

    fn fanout(&self) -> (Vec<Fanout>, RingCounters) {
        let fanout = self.state.lock().steering.fanout().collect();
        (fanout, self.counters())
    }

    fn counters(&self) -> RingCounters {
        let state = self.state.lock();
        RingCounters {
            soft_ring_full: state.steering.dropped(),
            ..state.counters
        }
    }
}

impl State {
    fn receive(&mut self, shared: &Shared) -> usize {
        let Self {
            pair,
            batch,
            counters,
            ..
        } = self;
        let pulled = pair.receive(BATCH_FRAMES_MAX, |frame| {
            packet::received(shared, crate::stack::interface::CARD, &frame);
            match dispatch::dispatch_of(&frame.chain, |addr| shared.routes.has(addr)) {
                Dispatch::Flow => batch.push(frame),
                Dispatch::Neighbor => {
                    teach(&frame);
                    batch.push(frame);
                }
                Dispatch::Dhcp => inbox::put_exception(0, frame),
                Dispatch::IcmpError(packet) => inbox::put_exception(steer::owner(&packet), frame),
                Dispatch::TcpFragment => counters.tcp_fragments += 1,
            }
        });
        let count = pulled.frames;
        self.pulls.pulled(&pulled, self.is_armed);
        if count != 0 && self.is_armed {
            self.is_armed = false;
            self.pair.disarm();
        }
        let before = self.counters.received / MANY_FRAMES;
        self.counters.received += count as u64;
        if self.counters.received / MANY_FRAMES != before {
            runners::watch();
        }
        count
    }

    fn spread(&mut self, number: u16) {
        let handed_over = &mut self.counters.handed_over;
        self.steering.spread(&mut self.batch, &mut |shard, frames| {
            if shard != number {
                *handed_over += frames.len() as u64;
            }
            inbox::put(shard, number, frames);
        });
    }
}

/// Shows a message between neighbours to all shards but the first, which gets it by the hash.
fn teach(frame: &RxFrame) {
    let shards = stack::first().count();
    let copies = (1..shards).filter_map(|shard| Some((shard, steer::announcement_of(frame)?)));
    copies.for_each(|(shard, copy)| inbox::put_exception(shard, copy));
}
