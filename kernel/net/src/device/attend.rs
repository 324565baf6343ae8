//! The card's own message: news that belongs to no ring, such as requests of its virtual functions.
//!
//! The interrupt only asks for a look. Looks do not pile up, and each does bounded work; how often
//! the card interrupts is the driver's to bound.
//!
//! Lock order: the card's control half, which is innermost.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use base::Instant;
use mach::sync::{Once, Spin};
use probes::RateLimit;
use sched::timer::{self, Expire, Target};

use super::config::with_control;

/// A look is to come. It is at the machine's card.
static IS_DUE: AtomicBool = AtomicBool::new(false);
/// Said once at boot: an interrupt finds memory short, too.
static LOOK: Once<Arc<Look>> = Once::new();

/// Lines in the log: so many at once, in so many nanoseconds.
const LINES: u32 = 4;
const WINDOW_NS: u64 = 10_000_000_000;

struct Look {
    /// How many requests the card had refused at the last look.
    refused: AtomicU64,
    limit: Spin<RateLimit>,
}

/// There is a card now, which may interrupt.
pub(super) fn attached() {
    LOOK.call_once(|| {
        Arc::new(Look {
            refused: AtomicU64::new(0),
            limit: Spin::new(RateLimit::new(LINES, WINDOW_NS)),
        })
    });
    card_asked(0);
}

/// The handler of the card's own interrupt.
pub fn card_asked(_: usize) {
    if let Some(look) = LOOK.get()
        && !IS_DUE.swap(true, Ordering::AcqRel)
    {
        timer::add(mach::time::now(), Target::Call(look.clone()));
    }
}

impl Expire for Look {
    fn expire(self: Arc<Self>, now: Instant) {
        // First, so that what is asked meanwhile gets a look of its own.
        IS_DUE.store(false, Ordering::Release);
        let refused = with_control(|card| card.attend()).unwrap_or(0);
        if refused == self.refused.swap(refused, Ordering::Relaxed) {
            return;
        }
        let said = self.limit.lock().say(now.as_nanos());
        if said.is_some() {
            mach::klog!("net card refused={refused} requests of virtual functions");
        }
    }
}
