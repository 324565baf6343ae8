//! What a CPU took from its pair of queues, by interrupt or by looking, in chains of which length:
//! illumos' hardware lane, but for what a lane of the link layer took by itself, which it counts.

use link::counters::{Cause, RxCount, RxCounts};

use super::moderation::{self, MANY_INTERRUPTS};
use super::pair::Batch;

/// The counts of one pair.
#[derive(Default)]
pub(crate) struct Pulls {
    counts: RxCounts,
    /// Interrupts that brought something, and all that was taken, whoever counts.
    interrupts: u64,
    frames: u64,
}

impl Pulls {
    /// A batch was taken; `was_armed` says whether the pair would have interrupted for it, which
    /// it does no longer.
    #[inline]
    pub fn pulled(&mut self, batch: &Batch, was_armed: bool) {
        let Batch {
            frames,
            bytes,
            is_by_lane,
        } = *batch;
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
        if is_by_lane {
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

    /// A lane that has counted so much is no more.
    pub fn take_over(&mut self, lane: &RxCounts) {
        self.counts.add_all(lane);
    }

    /// The counts, without what a lane beside the pair took by itself.
    pub fn counts(&self) -> &RxCounts {
        &self.counts
    }
}
