//! A debug mode in which single frames never come in the order of their addresses.
//!
//! A driver that takes pages for contiguous works as long as the allocator happens to
//! hand them out in a row, and fails later, elsewhere. In this mode two single frames
//! that a CPU gets one after the other are never neighbours, so it fails at once.

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

use crate::FrameNo;
use crate::stack::Stack;

/// Frames from which the next one is drawn.
pub(crate) const POOL_FRAMES: usize = 64;
/// Fewer are not drawn from while there are more to be had. A frame has two neighbours,
/// so that among three others one is none.
const CHOICE: usize = POOL_FRAMES / 2;
const _: () = assert!(CHOICE >= 3, "one must be no neighbour");

/// The frames of one CPU while the mode is on.
#[derive(Debug)]
pub(crate) struct Shuffle {
    pool: Stack<POOL_FRAMES>,
    /// State of the generator; 0 while the mode is off.
    state: AtomicU64,
    last: AtomicU64,
}

impl Shuffle {
    pub const fn off() -> Self {
        Self {
            pool: Stack::new(),
            state: AtomicU64::new(0),
            last: AtomicU64::new(0),
        }
    }

    pub fn start(&self, seed: u64) {
        self.state.store(seed | 1, Relaxed);
    }

    pub fn is_on(&self) -> bool {
        self.state.load(Relaxed) != 0
    }

    /// The frames to draw from.
    pub fn pool(&self) -> &Stack<POOL_FRAMES> {
        &self.pool
    }

    /// Whether the mode is on and the next draw should have more to choose from.
    pub fn wants_more(&self) -> bool {
        self.is_on() && self.pool.len() < CHOICE
    }

    /// A frame that is no neighbour of the one before, unless there are too few.
    pub fn draw(&self) -> Option<FrameNo> {
        let len = self.pool.len();
        let start = (self.random() % len.max(1) as u64) as usize;
        let last = self.last.load(Relaxed);
        let index = (0..len)
            .map(|step| (start + step) % len)
            .find(|&index| self.pool.get(index).is_some_and(|f| f.abs_diff(last) != 1))
            .unwrap_or(start);
        let frame = self.pool.swap_remove(index)?;
        self.last.store(frame, Relaxed);
        Some(frame)
    }

    /// xorshift64: a seed replays a run.
    fn random(&self) -> u64 {
        let mut state = self.state.load(Relaxed);
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        self.state.store(state, Relaxed);
        state
    }
}
