//! How far apart the card keeps the interrupts of each ring.
//!
//! [`link::moderation::Adaptive`] chooses by what interrupts find; this looks at each ring every
//! [`WINDOW`] while interrupts are many, and tells the card. An idle machine has no timer for
//! that: it begins with one of many interrupts, and ends when no ring is busy. A card that cannot
//! be told is not asked again, and the administrator's word (`intr-throttling`) ends it all.
//!
//! Lock order: a shard, a ring, then a CPU's timers; the card's control half is told with none
//! of them held.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use base::{Duration, Instant};
use link::moderation::Adaptive;
use mach::sync::Spin;
use sched::timer::{self, Expire, Target};

use super::config::with_control;
use crate::stack::{self, SHARDS_MAX};

/// Between two looks.
const WINDOW: Duration = Duration::from_millis(20);
/// So many interrupts of one ring make it worth to look.
pub(super) const MANY_INTERRUPTS: u64 = 256;

/// Whether a look is to come. The card is the machine's.
static IS_ON: AtomicBool = AtomicBool::new(false);
/// Whether the spacing is not the administrator's to say, and the card can be told. The card is the
/// machine's.
static IS_WANTED: AtomicBool = AtomicBool::new(true);
/// What each ring of the card keeps, the machine's one.
static SPACINGS_NS: [AtomicU64; SHARDS_MAX] = [const { AtomicU64::new(0) }; SHARDS_MAX];
/// What was seen of the card at the last look: the card is the machine's.
static WATCH: Spin<Watch> = Spin::new(Watch {
    since: None,
    rings: Vec::new(),
});

struct Watch {
    /// The last look, while there are any.
    since: Option<Instant>,
    rings: Vec<Watched>,
}

/// A ring, and what it had counted at the last look.
#[derive(Default)]
struct Watched {
    adaptive: Adaptive,
    interrupts: u64,
    frames: u64,
}

/// Many interrupts came.
#[cold]
pub(super) fn start() {
    if IS_WANTED.load(Relaxed) && !IS_ON.swap(true, Relaxed) {
        timer::add(mach::time::now() + WINDOW, Target::Call(Arc::new(Worker)));
    }
}

/// Whether the spacing follows the load; where not, it is told once by whoever says so.
pub(crate) fn set_adaptive(is_adaptive: bool) {
    IS_WANTED.store(is_adaptive, Relaxed);
}

/// The card keeps the interrupts of a ring apart so far from now on.
pub(crate) fn is_told(ring: u16, spacing: Duration) {
    if let Some(known) = SPACINGS_NS.get(usize::from(ring)) {
        known.store(spacing.as_nanos(), Relaxed);
    }
}

/// How far apart the interrupts of a ring are kept, in nanoseconds.
pub(crate) fn spacing_ns(ring: u16) -> u64 {
    let known = SPACINGS_NS.get(usize::from(ring));
    known.map_or(0, |known| known.load(Relaxed))
}

struct Worker;

impl Expire for Worker {
    fn expire(self: Arc<Self>, now: Instant) {
        let since = WATCH.lock().since.replace(now);
        let window = since.map(|since| now.since(since));
        let looks = (0..stack::first().count()).map(|ring| look(ring, window));
        let goes_on = looks.fold(false, |any, goes_on| any | goes_on);
        if goes_on {
            timer::add(now + WINDOW, Target::Call(self));
        } else {
            WATCH.lock().since = None;
            IS_ON.store(false, Relaxed);
        }
    }
}

/// Looks at one ring, for the first time if there is no window yet; says whether to look again.
fn look(ring: u16, window: Option<Duration>) -> bool {
    let load = stack::first().with_pair(ring, |_, pulls| pulls.load());
    let Some((interrupts, frames)) = load.filter(|_| IS_WANTED.load(Relaxed)) else {
        return false;
    };
    let (limit, is_at_rest) = {
        let mut watch = WATCH.lock();
        let rings = &mut watch.rings;
        if rings.len() <= usize::from(ring) {
            rings.resize_with(usize::from(ring) + 1, Watched::default);
        }
        let Some(watched) = rings.get_mut(usize::from(ring)) else {
            return false;
        };
        let came = interrupts.wrapping_sub(watched.interrupts);
        let taken = frames.wrapping_sub(watched.frames);
        (watched.interrupts, watched.frames) = (interrupts, frames);
        let Some(window) = window else {
            return true;
        };
        let limit = watched.adaptive.observe(came, taken, window);
        (limit, watched.adaptive.is_at_rest())
    };
    tell(ring, limit.spacing());
    !is_at_rest
}

fn tell(ring: u16, spacing: Duration) {
    if spacing.as_nanos() == spacing_ns(ring) {
        return;
    }
    match with_control(|card| card.set_moderation(ring, spacing)) {
        Some(Ok(())) => is_told(ring, spacing),
        _ => set_adaptive(false),
    }
}
