//! What one CPU keeps in front of the zones: frames that it can hand out without a lock.

use core::ops::DerefMut;

use crate::counts::{CacheStats, Counts};
use crate::shuffle::{POOL_FRAMES, Shuffle};
use crate::stack::Stack;
use crate::{Frame, FrameNo, FrameTable, Urgency, Zones};

/// Frames of any content that one CPU keeps at most.
const ANY_FRAMES: usize = 64;
/// Single frames moved under one hold of the lock.
pub const BATCH: usize = ANY_FRAMES / 2;
/// Zeroed frames that one CPU keeps at most, a batch among them that was found so.
const ZEROED_FRAMES: usize = 128;
const _: () = assert!(
    BATCH < POOL_FRAMES,
    "a batch fits into the pool of the shuffle"
);

/// Frames of a huge page: a block of order 9.
pub const HUGE_PAGES: u64 = 512;
/// Huge pages that one CPU keeps at most.
const HUGE_MAX: usize = 4;
/// Huge pages moved under one hold of the lock.
pub(crate) const HUGE_BATCH: usize = HUGE_MAX / 2;

/// What stands behind the caches. The machine brings the lock and the direct map.
pub trait Backing {
    /// The states of all frames.
    fn table(&self) -> &FrameTable;
    /// The zones, locked.
    fn zones(&self) -> impl DerefMut<Target = Zones>;
    /// Fills a frame, which the caller owns, with zeros.
    fn zero(&self, frame: FrameNo);
}

/// The caches of one CPU. For the zones, what rests here is in use, so it does not merge.
#[derive(Debug)]
#[repr(align(64))]
pub struct LocalFrames {
    pub(crate) any: Stack<ANY_FRAMES>,
    pub(crate) zeroed: Stack<ZEROED_FRAMES>,
    /// First frames of huge pages. Their known-zero bits stay in the table.
    pub(crate) huge: Stack<HUGE_MAX>,
    pub(crate) shuffle: Shuffle,
    pub(crate) counts: Counts,
}

/// Which content is liked better; only a preference.
#[derive(Clone, Copy)]
enum Wish {
    Any,
    Zeros,
}

impl LocalFrames {
    /// Empty caches.
    pub const fn new() -> Self {
        Self {
            any: Stack::new(),
            zeroed: Stack::new(),
            huge: Stack::new(),
            shuffle: Shuffle::off(),
            counts: Counts::new(),
        }
    }

    /// Fits the caches to a machine of `frames` frames: what rests on one CPU is lost to
    /// the others, so on a small machine that is little.
    pub fn fit(&self, frames: u64) {
        let share = |divisor: u64| (frames / divisor) as usize;
        self.zeroed.set_limit(BATCH + share(256));
        self.huge.set_limit(share(64 * HUGE_PAGES));
    }

    /// From now on single frames come in no order; see the module `shuffle`.
    pub fn shuffle(&self, seed: u64) {
        self.any.set_limit(0);
        self.zeroed.set_limit(0);
        self.shuffle.start(seed);
    }

    /// What these caches hold and did. Any CPU may ask.
    pub fn stats(&self) -> CacheStats {
        let singles = self.any.len() + self.zeroed.len() + self.shuffle.pool().len();
        let resting = singles as u64 + self.huge.len() as u64 * HUGE_PAGES;
        self.counts.stats(resting)
    }

    /// One frame with one owner and any content.
    #[inline]
    pub fn alloc(&self, backing: &impl Backing, urgency: Urgency) -> Option<Frame> {
        self.counts.requests.add(1);
        let frame = match self.any.pop() {
            Some(frame) => frame,
            None => self.alloc_slowly(backing, urgency, Wish::Any)?.0,
        };
        Some(Frame::from_number(frame))
    }

    /// One frame full of zeros, with one owner.
    #[inline]
    pub fn alloc_zeroed(&self, backing: &impl Backing, urgency: Urgency) -> Option<Frame> {
        self.counts.requests.add(1);
        if let Some(frame) = self.zeroed.pop() {
            self.counts.found_zero.add(1);
            return Some(Frame::from_number(frame));
        }
        let (frame, is_zero) = match self.any.pop() {
            Some(frame) => (frame, false),
            None => self.alloc_slowly(backing, urgency, Wish::Zeros)?,
        };
        self.zero_unless(backing, frame, is_zero);
        Some(Frame::from_number(frame))
    }

    #[inline]
    pub(crate) fn zero_unless(&self, backing: &impl Backing, frame: FrameNo, is_zero: bool) {
        if is_zero {
            self.counts.found_zero.add(1);
        } else {
            self.counts.zeroed_now.add(1);
            backing.zero(frame);
        }
    }

    /// Gives back a frame whose last owner is gone.
    #[inline]
    pub fn free(&self, backing: &impl Backing, frame: Frame) {
        if let Err(frame) = self.any.push(frame.into_number()) {
            self.free_slowly(backing, frame);
        }
    }

    /// A frame, and whether it holds zeros.
    #[cold]
    #[inline(never)]
    fn alloc_slowly(
        &self,
        backing: &impl Backing,
        urgency: Urgency,
        wish: Wish,
    ) -> Option<(FrameNo, bool)> {
        self.refill(backing, urgency);
        if self.shuffle.is_on() {
            let frame = self.shuffle.draw()?;
            return Some((frame, backing.table().take_zero(frame)));
        }
        let any = || Some((self.any.pop()?, false));
        let zeroed = || Some((self.zeroed.pop()?, true));
        match wish {
            Wish::Any => any().or_else(zeroed),
            Wish::Zeros => zeroed().or_else(any),
        }
    }

    #[cold]
    #[inline(never)]
    fn free_slowly(&self, backing: &impl Backing, frame: FrameNo) {
        let place = |frame| match self.shuffle.is_on() {
            true => self.shuffle.pool().push(frame),
            false => self.any.push(frame),
        };
        let Err(frame) = place(frame) else { return };
        self.counts.returns.add(1);
        let mut batch = [0; BATCH];
        let taken = match self.shuffle.is_on() {
            true => self.shuffle.pool().take_oldest(&mut batch),
            false => self.any.take_oldest(&mut batch),
        };
        let mut zones = backing.zones();
        zones.give(backing.table(), &batch[..taken]);
        if let Err(frame) = place(frame) {
            zones.give(backing.table(), &[frame]);
        }
    }

    /// Brings a batch from the zones, zeroed frames to their like. Does nothing while
    /// there are so many zeroed ones that a batch of them might not find room.
    #[cold]
    #[inline(never)]
    pub(crate) fn refill(&self, backing: &impl Backing, urgency: Urgency) {
        if self.zeroed_room() < BATCH && !self.shuffle.wants_more() {
            return;
        }
        self.counts.misses.add(1);
        let mut batch = [0; BATCH];
        let mut zones = backing.zones();
        let mut taken = zones.take(backing.table(), &mut batch, urgency);
        if taken == 0 && !self.huge.is_empty() {
            self.return_huge(&mut zones, backing.table());
            taken = zones.take(backing.table(), &mut batch, urgency);
        }
        // Last first, so that they leave in ascending order.
        for &frame in batch[..taken].iter().rev() {
            if let Err(frame) = self.rest(backing.table(), frame) {
                zones.give(backing.table(), &[frame]);
            }
        }
    }

    /// Puts a frame that came from the zones where it belongs.
    fn rest(&self, table: &FrameTable, frame: FrameNo) -> Result<(), FrameNo> {
        match self.shuffle.is_on() {
            true => self.shuffle.pool().push(frame),
            false if table.take_zero(frame) => self.zeroed.push(frame),
            false => self.any.push(frame),
        }
    }

    /// How many zeroed frames find room.
    pub(crate) fn zeroed_room(&self) -> usize {
        self.zeroed.limit().saturating_sub(self.zeroed.len())
    }
}

impl Default for LocalFrames {
    fn default() -> Self {
        Self::new()
    }
}
