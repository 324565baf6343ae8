//! Where received frames wait for a station, or for the card's own stack.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use link::RxChain;
use mach::sync::Spin;
use mbuf::RxFrame;

/// Frames that wait at most.
pub(super) const FRAMES_MAX: usize = 1024;

/// A bounded queue of frames.
#[derive(Default)]
pub(super) struct Inbox {
    frames: Spin<RxChain>,
    dropped: AtomicU64,
}

impl Inbox {
    /// Takes all frames; those that have no room are dropped and counted. Returns how many.
    pub fn put(&self, chain: &mut RxChain) -> u64 {
        let mut frames = self.frames.lock();
        let room = FRAMES_MAX.saturating_sub(frames.len());
        if chain.len() <= room {
            frames.append(chain);
            return 0;
        }
        let dropped = (chain.len() - room) as u64;
        chain
            .drain()
            .take(room)
            .for_each(|frame| frames.push(frame));
        self.count_dropped(dropped);
        dropped
    }

    /// Takes a frame, or drops and counts it.
    pub fn put_one(&self, frame: RxFrame) {
        let mut frames = self.frames.lock();
        match frames.len() < FRAMES_MAX {
            true => frames.push(frame),
            false => self.count_dropped(1),
        }
    }

    /// So many frames were lost.
    pub fn count_dropped(&self, frames: u64) {
        self.dropped.fetch_add(frames, Relaxed);
    }

    /// Gives the first `budget` frames to `sink`; returns how many there were.
    pub fn drain(&self, budget: usize, sink: &mut dyn FnMut(RxFrame)) -> usize {
        let mut frames = self.frames.lock();
        let mut count = 0;
        while count < budget
            && let Some(frame) = frames.pop()
        {
            sink(frame);
            count += 1;
        }
        count
    }

    /// Forgets all frames.
    pub fn clear(&self) {
        let old = core::mem::take(&mut *self.frames.lock());
        drop(old);
    }

    /// Frames that wait.
    pub fn len(&self) -> usize {
        self.frames.lock().len()
    }

    /// Frames that there was no room or memory for.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Relaxed)
    }
}
