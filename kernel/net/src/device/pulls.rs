//! What a CPU took from its pair of queues, by interrupt or by looking, in chains of which length:
//! illumos' hardware lane, counted where no lane of the link layer does it.

use link::counters::{Cause, RxCount, RxCounts};

use super::moderation::{self, MANY_INTERRUPTS};

/// The counts of one pair.
#[derive(Default)]
pub(crate) struct Pulls {
    counts: RxCounts,
    /// A lane has the pair, and counts.
    is_lent: bool,
    /// Interrupts that brought something, and all that was taken, whoever counts.
    interrupts: u64,
    frames: u64,
}

impl Pulls {
    /// A chain was taken; `was_armed` says whether the pair would have interrupted for it, which
    /// it does no longer.
    #[inline]
    pub fn pulled(&mut self, frames: usize, bytes: u64, was_armed: bool) {
        if frames == 0 {
            return;
        }
        self.frames += frames as u64;
        if was_armed {
            self.interrupts += 1;
            if self.interrupts.is_multiple_of(MANY_INTERRUPTS) {
                moderation::start();
            }
        }
        if self.is_lent {
            return;
        }
        let cause = match was_armed {
            true => Cause::Interrupt,
            false => Cause::Poll,
        };
        self.counts.pulled(frames, bytes, cause);
        self.counts.add(RxCount::PollStarts, was_armed.into());
    }

    /// Interrupts and frames, for who watches the load.
    pub fn load(&self) -> (u64, u64) {
        (self.interrupts, self.frames)
    }

    /// From now on a lane counts.
    pub fn lend(&mut self) {
        self.is_lent = true;
    }

    /// And no longer; this is what it counted.
    pub fn take_back(&mut self, lane: &RxCounts) {
        self.counts.add_all(lane);
        self.is_lent = false;
    }

    /// The counts without those of a lane that has the pair now.
    pub fn counts(&self) -> &RxCounts {
        &self.counts
    }
}
