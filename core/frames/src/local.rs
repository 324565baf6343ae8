//! What one CPU keeps in front of the zones: frames that it can hand out without a lock.

use crate::counts::{CacheStats, Counts};
use crate::home::Home;
use crate::shuffle::{POOL_FRAMES, Shuffle};
use crate::stack::Stack;
use crate::{Frame, FrameNo, FrameTable, Node, Urgency, ZoneLock, Zones};

/// Frames of any content that one CPU keeps at most.
const ANY_FRAMES: usize = 64;
/// Single frames moved under one hold of a lock.
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
/// Huge pages moved together.
pub(crate) const HUGE_BATCH: usize = HUGE_MAX / 2;

/// What stands behind the caches. The machine brings the locks and the direct map.
pub trait Backing {
    /// The lock of each zone.
    type Lock: ZoneLock;
    /// The states of all frames.
    fn table(&self) -> &FrameTable;
    /// The zones.
    fn zones(&self) -> &Zones<Self::Lock>;
    /// Fills a frame, which the caller owns, with zeros.
    fn zero(&self, frame: FrameNo);
}

/// The caches of one CPU. For the zones, what rests here is in use, so it does not merge.
///
/// They are filled from the nearest zone that has frames. A frame of another node comes
/// here only if there is no nearer one, and is not given out again once it was given back:
/// it waits in `far` for the way home.
#[derive(Debug)]
#[repr(align(64))]
pub struct LocalFrames {
    pub(crate) home: Home,
    pub(crate) any: Stack<ANY_FRAMES>,
    pub(crate) far: Stack<BATCH>,
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
            home: Home::everywhere(),
            any: Stack::new(),
            far: Stack::new(),
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

    /// Says whose CPU this is. Until then all frames are near.
    pub fn settle(&self, node: Node, zones: &Zones<impl ZoneLock>) {
        self.home.settle(node, zones.layout().home_of(node));
    }

    /// The node that the CPU belongs to.
    pub fn node(&self) -> Node {
        self.home.node()
    }

    /// From now on single frames come in no order; see the module `shuffle`.
    pub fn shuffle(&self, seed: u64) {
        self.any.set_limit(0);
        self.zeroed.set_limit(0);
        self.shuffle.start(seed);
    }

    /// What these caches hold and did. Any CPU may ask.
    pub fn stats(&self) -> CacheStats {
        let near = self.any.len() + self.zeroed.len() + self.shuffle.pool().len();
        let singles = near + self.far.len();
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
        let frame = frame.into_number();
        if !self.home.holds(frame) || self.any.push(frame).is_err() {
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
            let frame = self.shuffle.draw().or_else(|| self.far.pop())?;
            return Some((frame, backing.table().take_zero(frame)));
        }
        let any = || Some((self.any.pop().or_else(|| self.far.pop())?, false));
        let zeroed = || Some((self.zeroed.pop()?, true));
        match wish {
            Wish::Any => any().or_else(zeroed),
            Wish::Zeros => zeroed().or_else(any),
        }
    }

    #[cold]
    #[inline(never)]
    fn free_slowly(&self, backing: &impl Backing, frame: FrameNo) {
        if self.home.is_far(backing.zones().layout(), frame) {
            return self.free_into(backing, &self.far, frame);
        }
        match self.shuffle.is_on() {
            true => self.free_into(backing, self.shuffle.pool(), frame),
            false => self.free_into(backing, &self.any, frame),
        }
    }

    /// Puts a frame on a stack; if that is full, what rested longest makes room.
    fn free_into<const N: usize>(&self, backing: &impl Backing, stack: &Stack<N>, frame: FrameNo) {
        let Err(frame) = stack.push(frame) else {
            return;
        };
        self.counts.returns.add(1);
        let mut batch = [0; BATCH];
        let taken = stack.take_oldest(&mut batch[..batch_to_give(stack)]);
        backing.zones().give(backing.table(), &batch[..taken]);
        if let Err(frame) = stack.push(frame) {
            backing.zones().give(backing.table(), &[frame]);
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
        let (zones, table, node) = (backing.zones(), backing.table(), self.node());
        let mut taken = zones.take(table, &mut batch, urgency, node);
        if taken == 0 && !self.huge.is_empty() {
            self.return_huge(zones, table);
            taken = zones.take(table, &mut batch, urgency, node);
        }
        // Last first, so that they leave in ascending order.
        for &frame in batch[..taken].iter().rev() {
            if let Err(frame) = self.rest(table, frame) {
                zones.give(table, &[frame]);
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

/// How many of the frames that rested longest go back together: a batch, but if its last ones lie
/// in order, up or down, without those that begin a block of its size, which the next batch most
/// likely completes. A block that goes back whole is one step for the zone, its pieces are many.
fn batch_to_give<const N: usize>(stack: &Stack<N>) -> usize {
    const BLOCK: u64 = BATCH as u64;
    let (Some(before), Some(last)) = (stack.get(BATCH - 2), stack.get(BATCH - 1)) else {
        return BATCH;
    };
    let begun = match (before.checked_sub(last), last.checked_sub(before)) {
        (_, Some(1)) => (last + 1) % BLOCK,
        (Some(1), _) => last.wrapping_neg() % BLOCK,
        _ => 0,
    };
    BATCH - begun as usize
}

impl Default for LocalFrames {
    fn default() -> Self {
        Self::new()
    }
}
