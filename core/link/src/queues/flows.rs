//! Which queue has which connection, by a keyed hash of its ends, in a table of one size.
//!
//! A bucket is a cache line of eight flows. A new flow takes the place of, in this order: nobody; one that its queue has
//! closed; one whose peer has not answered yet; one of which nothing was heard for [`IDLE`], and of several that are
//! alike the one that was heard longest ago. Without any of these it is not learned, and counted: its segments then go
//! by their hash, which led its SYN to the queue that has it, and leads there for as long as no queue comes or goes. So a
//! table that is full, or is filled by somebody who opens connections and answers, costs a flow its place
//! only when queues change.
//!
//! What a queue has closed stays until its place is wanted: last acknowledgements still find the way.
//!
//! A SYN that was given to a queue is noted as well ([`Flows::ask`]), so that one that comes again goes there until the queue
//! has answered, but only where half of its bucket is to spare. It is no flow: nothing but a SYN finds it, and it
//! pushes out nothing but what a queue has closed. After [`ASKED_IDLE`] its place is to spare again.
//!
//! A flow is known by 43 bits of its hash. Peers cannot make two alike, for they do not know the key.

use alloc::vec::Vec;
use core::net::IpAddr;

use base::{Duration, Instant, NoMemory};
use wire::TcpFlags;

const BUCKETS: usize = 4096;
const BUCKET_FLOWS: usize = 8;
/// Flows at most.
pub const FLOWS_MAX: usize = BUCKETS * BUCKET_FLOWS;
/// Places of a bucket that are to spare before a SYN is noted.
const SPARE_MIN: usize = BUCKET_FLOWS / 2;
/// A SYN that was not answered and did not come again for so long will not be.
pub const ASKED_IDLE: Duration = Duration::from_secs(8);
/// A flow that was silent for so long gives way.
pub const IDLE: Duration = Duration::from_secs(60);

/// The hash of a flow's ends, as received: from the peer to us.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Flow(u64);

fn fold_multiply(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

const MIX: u64 = 0x9e37_79b9_7f4a_7c15;

impl Flow {
    pub fn new(key: [u64; 2], (from, to): (IpAddr, IpAddr), ports: Option<(u16, u16)>) -> Self {
        let (from_port, to_port) = ports.unwrap_or_default();
        let from = words(key, from) ^ u64::from(from_port) << 48;
        let to = words(key, to) ^ u64::from(to_port) << 48;
        let first = fold_multiply(from ^ key[0], to ^ key[1] | 1);
        Self(fold_multiply(first ^ key[1], MIX ^ key[0] | 1))
    }

    /// The flow's hash with a queue.
    pub fn with(self, key: [u64; 2], queue: u16) -> u64 {
        let queue = u64::from(queue + 1).wrapping_mul(MIX);
        fold_multiply(self.0 ^ key[1], queue ^ key[0] | 1)
    }

    fn bucket(self) -> usize {
        self.0 as usize % BUCKETS
    }

    fn tag(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

fn words(key: [u64; 2], address: IpAddr) -> u64 {
    match address {
        IpAddr::V4(address) => u64::from(address.to_bits()),
        IpAddr::V6(address) => {
            let bits = address.to_bits();
            fold_multiply(bits as u64 ^ key[0], (bits >> 64) as u64 ^ key[1] | 1)
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum Phase {
    #[default]
    Free,
    /// Its queue has closed it.
    Closing,
    /// Its peer has sent a SYN, and its queue nothing.
    Asked,
    /// Its queue has sent a SYN, and the peer has not acknowledged it.
    Opening,
    Open,
}

#[derive(Clone, Copy, Default, Debug)]
struct Place {
    tag: u32,
    /// Seconds, modulo 2^16, when it was heard last.
    heard: u16,
    queue: u8,
    phase: Phase,
}

type Bucket = [Place; BUCKET_FLOWS];
const _: () = assert!(size_of::<Bucket>() == 64, "a cache line");

fn seconds(now: Instant) -> u16 {
    (now.as_nanos() / 1_000_000_000) as u16
}

/// See the module.
#[derive(Debug)]
pub(super) struct Flows {
    buckets: Vec<Bucket>,
    unlearned: u64,
}

impl Flows {
    pub fn new() -> Result<Self, NoMemory> {
        let mut buckets = Vec::new();
        buckets.try_reserve_exact(BUCKETS).map_err(|_| NoMemory)?;
        buckets.resize(BUCKETS, Bucket::default());
        Ok(Self {
            buckets,
            unlearned: 0,
        })
    }

    pub fn unlearned(&self) -> u64 {
        self.unlearned
    }

    fn known(&mut self, flow: Flow) -> Option<&mut Place> {
        let is_it = |place: &&mut Place| place.phase != Phase::Free && place.tag == flow.tag();
        self.buckets.get_mut(flow.bucket())?.iter_mut().find(is_it)
    }

    /// The queue that a received segment's flow is of. One that is closed does not keep its peer from opening another.
    pub fn find(&mut self, flow: Flow, flags: TcpFlags, now: Instant) -> Option<u16> {
        let is_acknowledging = flags.has(TcpFlags::ACK);
        let opens = flags.has(TcpFlags::SYN) && !is_acknowledging;
        let place = self.known(flow)?;
        match place.phase {
            Phase::Closing if opens => return None,
            Phase::Asked if !opens => return None,
            Phase::Opening if is_acknowledging => place.phase = Phase::Open,
            _ => {}
        }
        place.heard = seconds(now);
        Some(place.queue.into())
    }

    /// A queue gets a SYN of a flow that is not known; false without places to spare.
    pub fn ask(&mut self, flow: Flow, queue: u16, now: Instant) -> bool {
        let heard = seconds(now);
        let Some(bucket) = self.buckets.get_mut(flow.bucket()) else {
            return false;
        };
        let has_it = |place: &Place| place.phase != Phase::Free && place.tag == flow.tag();
        let spare = bucket.iter().filter(|place| place.is_spare(heard)).count();
        if spare < SPARE_MIN || bucket.iter().any(has_it) {
            return false;
        }
        let places = bucket.iter_mut().filter(|place| place.is_spare(heard));
        if let Some(place) = places.min_by_key(|place| place.gives_way(heard)) {
            *place = Place {
                tag: flow.tag(),
                heard,
                queue: queue as u8,
                phase: Phase::Asked,
            };
        }
        true
    }

    /// A queue answers no SYN that it was given.
    pub fn forget_asked(&mut self, queue: u16) {
        let places = self.buckets.iter_mut().flatten();
        let theirs =
            places.filter(|place| u16::from(place.queue) == queue && place.phase == Phase::Asked);
        theirs.for_each(|place| *place = Place::default());
    }

    /// A queue has opened a flow, or agreed to.
    pub fn begin(&mut self, flow: Flow, queue: u16, now: Instant) {
        let heard = seconds(now);
        let fresh = Place {
            tag: flow.tag(),
            heard,
            queue: queue as u8,
            phase: Phase::Opening,
        };
        if let Some(place) = self.known(flow) {
            // A SYN-ACK that is sent again begins nothing.
            if place.queue != fresh.queue || matches!(place.phase, Phase::Closing | Phase::Asked) {
                *place = fresh;
            }
            return;
        }
        if !self.learn(flow, fresh) {
            self.unlearned += 1;
        }
    }

    /// A connection goes on at another queue; false if it was not known and there is no place for it.
    pub fn give(&mut self, flow: Flow, queue: u16, now: Instant) -> bool {
        let fresh = Place {
            tag: flow.tag(),
            heard: seconds(now),
            queue: queue as u8,
            phase: Phase::Open,
        };
        match self.known(flow) {
            Some(place) => {
                // One that its queue has closed still gives way.
                let phase = match place.phase {
                    Phase::Closing => Phase::Closing,
                    _ => Phase::Open,
                };
                *place = Place { phase, ..fresh };
                true
            }
            None => self.learn(flow, fresh),
        }
    }

    /// False without a place for it.
    fn learn(&mut self, flow: Flow, fresh: Place) -> bool {
        let heard = fresh.heard;
        let bucket = self.buckets.get_mut(flow.bucket());
        let givable = bucket.and_then(|bucket| {
            let places = bucket.iter_mut();
            let givable = places.filter_map(|place| Some((place.gives_way(heard)?, place)));
            givable.min_by_key(|(rank, _)| *rank)
        });
        match givable {
            Some((_, place)) => {
                *place = fresh;
                true
            }
            None => false,
        }
    }

    /// A queue has sent the last byte of a flow.
    pub fn end(&mut self, flow: Flow) {
        if let Some(place) = self.known(flow) {
            place.phase = Phase::Closing;
        }
    }

    /// A queue has refused a flow, or broken it off.
    pub fn forget(&mut self, flow: Flow) {
        if let Some(place) = self.known(flow) {
            *place = Place::default();
        }
    }

    /// Forgets a queue's flows.
    pub fn forget_queue(&mut self, queue: u16) {
        let places = self.buckets.iter_mut().flatten();
        let theirs = places.filter(|place| u16::from(place.queue) == queue);
        theirs.for_each(|place| *place = Place::default());
    }

    /// Whether a queue has any that it has not closed.
    pub fn has_any_of(&self, queue: u16) -> bool {
        let is_its = |place: &Place| {
            u16::from(place.queue) == queue && matches!(place.phase, Phase::Opening | Phase::Open)
        };
        self.buckets.iter().flatten().any(is_its)
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.buckets.fill(Bucket::default());
    }
}

impl Place {
    /// Nobody misses what is there.
    fn is_spare(&self, now: u16) -> bool {
        let silent = u64::from(now.wrapping_sub(self.heard));
        match self.phase {
            Phase::Free | Phase::Closing => true,
            Phase::Asked => silent >= ASKED_IDLE.as_secs(),
            Phase::Opening | Phase::Open => false,
        }
    }

    /// The lower, the sooner it gives way to another flow; `None` if it does not.
    fn gives_way(&self, now: u16) -> Option<(u8, u16)> {
        let silent = now.wrapping_sub(self.heard);
        let rank = match self.phase {
            Phase::Free => 0,
            Phase::Closing => 1,
            Phase::Asked | Phase::Opening => 2,
            Phase::Open if u64::from(silent) >= IDLE.as_secs() => 3,
            Phase::Open => return None,
        };
        Some((rank, u16::MAX - silent))
    }
}
