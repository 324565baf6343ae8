//! Looks after the cards' transmit queues while they have frames.
//!
//! A card that stops sending is found by whoever looks at its queues every few seconds
//! (`hal::Watchdog`). An idle machine has no timer for that: the watch begins with the next
//! announcement to a card, which costs one load there, and ends when a look finds all queues
//! empty.
//!
//! Cards are the machine's, and so is the watch: all rings are those of the first stack. Lock
//! order: a shard, a ring, a CPU's timers; neither of the first two is held when the card's
//! control half sets its filters again.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

use base::{Duration, Instant};
use hal::{Remedy, Stall};

use super::config::with_control;
use crate::stack;
use sched::timer::{self, Expire, Target};

/// Between two looks.
const INTERVAL: Duration = Duration::from_secs(2);

/// Whether a look is to come. It watches the card, which is the machine's.
static IS_ON: AtomicBool = AtomicBool::new(false);

/// A card was told of frames.
#[inline]
pub(crate) fn kicked() {
    if !IS_ON.load(Relaxed) {
        start(mach::time::now());
    }
}

#[cold]
fn start(now: Instant) {
    if !IS_ON.swap(true, Relaxed) {
        timer::add(now + INTERVAL, Target::Call(Arc::new(Worker)));
    }
}

struct Worker;

impl Expire for Worker {
    fn expire(self: Arc<Self>, now: Instant) {
        // First, so that whoever kicks a card after the look starts the watch again.
        IS_ON.store(false, Relaxed);
        let looks = (0..stack::first().count()).map(|ring| look(ring, now));
        if looks.fold(false, |has_any, has_frames| has_any | has_frames) {
            start(now);
        }
    }
}

/// Looks at one ring's queue; says whether it has frames.
fn look(ring: u16, now: Instant) -> bool {
    let looked = stack::first().with_pair(ring, |pair, _| (pair.port().watch(now), pair.unsent()));
    let (stall, frames) = looked.unwrap_or_default();
    if let Some(stall) = stall {
        if stall.remedy == Remedy::CardReset {
            with_control(|card| card.restore());
        }
        report(ring, stall);
    }
    frames != 0
}

fn report(ring: u16, stall: Stall) {
    let Stall {
        frames,
        duration,
        remedy,
    } = stall;
    let outcome = match remedy {
        Remedy::Reset | Remedy::CardReset => "reset",
        Remedy::Reminded => "reminded",
        Remedy::Failed => "failed",
    };
    let seconds = duration.as_secs();
    mach::klog!("stalled ring={ring} frames={frames} seconds={seconds} outcome={outcome}");
}
