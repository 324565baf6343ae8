//! Spreads one ring's frames over CPUs, and re-steers without reordering.
//!
//! The problem: a flow moves to another CPU when the administrator says so or a CPU has
//! too much to do, while frames of it still wait on the old one. A frame that takes the
//! new way at once may overtake them.
//!
//! The idea: flows are steered by bucket ([`rss`](crate::rss)). Each ring is the only
//! sender into its soft rings, one for each CPU, so it knows how many frames it has sent
//! to each; a soft ring's owner publishes how many it has finished with ([`Progress`]).
//! A bucket remembers the position of its last frame. Once it is to move, no more of its
//! frames take the old way: they are *parked* with the sender until the old soft ring has
//! finished with that last one, which a busy flow on a busy CPU would otherwise never see.
//!
//! Invariants:
//! - *One place*: all unfinished frames of a bucket are in one soft ring, or parked
//!   behind those that are.
//! - *No lost wakeup*: who parks sets `is_awaited` and then looks at the progress again;
//!   who finishes adds to the progress and then looks at `is_awaited`.
//!
//! Bounded: a soft ring that holds more than [`SOFT_RING_HIGH`] frames drops what
//! arrives, a whole chain at a time. So it never holds more than that and one chain.
//! No more than that are parked either.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use mbuf::RxFrame;

use crate::chain::RxChain;
use crate::headers::{Header, Packet};
use crate::rss::{BUCKETS, Hasher, Indirection, Rss, bucket_of};

/// Frames that wait for another CPU before more are dropped.
pub const SOFT_RING_HIGH: u64 = 1024;

/// How far the owner of a soft ring has come; shared with the ring's owner.
#[derive(Debug, Default)]
pub struct Progress {
    finished: AtomicU64,
    is_awaited: AtomicBool,
}

impl Progress {
    /// Counts frames that have gone up the stack, or were dropped there. True if the
    /// ring's owner waits for that: make it call [`Steering::spread`].
    pub fn finish(&self, frames: u64) -> bool {
        self.finished.fetch_add(frames, Ordering::SeqCst);
        self.is_awaited.swap(false, Ordering::SeqCst)
    }

    fn has_finished(&self, position: u64) -> bool {
        self.finished.load(Ordering::SeqCst) >= position
    }

    /// Whether `position` is finished; if not, `finish` will say that it is awaited.
    fn await_position(&self, position: u64) -> bool {
        if self.has_finished(position) {
            return true;
        }
        self.is_awaited.store(true, Ordering::SeqCst);
        self.has_finished(position)
    }
}

#[derive(Default)]
struct Bucket {
    target: u16,
    /// Frames sent to `target` when the last one of this bucket had gone, it included.
    last: u64,
    parked: RxChain,
}

struct SoftRing {
    sent: u64,
    sent_bytes: u64,
    progress: Arc<Progress>,
    /// Sorted, not yet handed over; empty between batches.
    pending: RxChain,
}

impl SoftRing {
    fn position(&self) -> u64 {
        self.sent + self.pending.len() as u64
    }

    fn waiting(&self) -> u64 {
        let finished = self.progress.finished.load(Ordering::Relaxed);
        self.sent.saturating_sub(finished)
    }
}

/// What went into one soft ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Fanout {
    /// Frames.
    pub frames: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Frames that its CPU has not finished with.
    pub waiting: u64,
}

/// The steering of one ring's frames; owned by the ring's CPU.
pub struct Steering {
    hasher: Hasher,
    wanted: Indirection,
    buckets: Box<[Bucket; BUCKETS]>,
    rings: Vec<SoftRing>,
    /// Frames in all buckets' `parked`.
    parked: u64,
    dropped: u64,
}

impl Steering {
    /// Over the soft rings whose owners publish in `progress`, one for each CPU, at least
    /// one. All lead to the first until told otherwise.
    pub fn new(rss: &Rss, progress: Vec<Arc<Progress>>) -> Self {
        let rings = progress.into_iter().map(|progress| SoftRing {
            sent: 0,
            sent_bytes: 0,
            progress,
            pending: RxChain::new(),
        });
        Self {
            hasher: Hasher::new(rss),
            wanted: Indirection::even(1),
            buckets: Box::new(core::array::from_fn(|_| Bucket::default())),
            rings: rings.collect(),
            parked: 0,
            dropped: 0,
        }
    }

    /// Leads buckets elsewhere, each as soon as its frames on the old way are done.
    /// Targets that do not exist leave their buckets where they are.
    pub fn resteer(&mut self, wanted: Indirection) {
        self.wanted = wanted;
    }

    /// Frames dropped because their soft ring, or the parking, was full.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// What each soft ring got, and how much of it waits.
    pub fn fanout(&self) -> impl Iterator<Item = Fanout> + '_ {
        self.rings.iter().map(|ring| Fanout {
            frames: ring.sent,
            bytes: ring.sent_bytes,
            waiting: ring.waiting(),
        })
    }

    /// Frames that nobody has finished with.
    pub fn waiting(&self) -> u64 {
        self.parked + self.rings.iter().map(SoftRing::waiting).sum::<u64>()
    }

    /// Hands `chain`, and what was parked and may go, over: one call of `hand_over` for
    /// each soft ring that gets frames. What it leaves in the chain is lost.
    pub fn spread(&mut self, chain: &mut RxChain, hand_over: &mut dyn FnMut(u16, &mut RxChain)) {
        if self.parked > 0 {
            self.unpark();
        }
        for frame in chain.drain() {
            self.sort(frame);
        }
        for (target, ring) in (0..).zip(&mut self.rings) {
            let frames = ring.pending.len() as u64;
            if frames == 0 {
                continue;
            }
            if ring.waiting() > SOFT_RING_HIGH {
                ring.pending.clear();
                self.dropped += frames;
                continue;
            }
            ring.sent += frames;
            ring.sent_bytes += ring.pending.bytes();
            hand_over(target, &mut ring.pending);
            ring.pending.clear();
        }
    }

    fn sort(&mut self, frame: RxFrame) {
        let header = Header::of(&frame.chain);
        let packet = header.and_then(|header| Packet::of(&header, &frame.chain));
        let index = bucket_of(self.hasher.hash(packet.as_ref()));
        let must_park = !self.buckets[index].parked.is_empty() || !self.may_go(index);
        match must_park {
            true if self.parked >= SOFT_RING_HIGH => self.dropped += 1,
            true => {
                self.buckets[index].parked.push(frame);
                self.parked += 1;
            }
            false => self.send(index, frame),
        }
    }

    fn unpark(&mut self) {
        for index in 0..BUCKETS {
            if self.buckets[index].parked.is_empty() || !self.may_go(index) {
                continue;
            }
            let mut frames = core::mem::take(&mut self.buckets[index].parked);
            self.parked -= frames.len() as u64;
            frames.drain().for_each(|frame| self.send(index, frame));
        }
    }

    fn send(&mut self, index: usize, frame: RxFrame) {
        let bucket = &mut self.buckets[index];
        if let Some(ring) = self.rings.get_mut(usize::from(bucket.target)) {
            ring.pending.push(frame);
            bucket.last = ring.position();
        }
    }

    /// Moves a bucket to where it is wanted, unless its frames are on the old way.
    fn may_go(&mut self, index: usize) -> bool {
        let (wanted, bucket) = (self.wanted.target(index), &mut self.buckets[index]);
        if wanted == bucket.target || usize::from(wanted) >= self.rings.len() {
            return true;
        }
        if let Some(old) = self.rings.get(usize::from(bucket.target)) {
            // Frames dropped at a full soft ring have no position to wait for.
            let last = bucket.last.min(old.position());
            if last > old.sent || !old.progress.await_position(last) {
                return false;
            }
        }
        bucket.target = wanted;
        true
    }
}
