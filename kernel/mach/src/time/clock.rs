//! What the clock shows, from any CPU at any moment.
//!
//! The parameters are published under a sequence number: odd while they change, and a
//! reader that saw an odd or a changed number starts anew. The vDSO's page holds the same
//! under a number of its own, which changes within ours, so that no program sees a clock
//! that the kernel does not show. A line is bent through the point that it shows while
//! nobody can read it, which keeps the clock from going back however long the host stops
//! the writer.
//!
//! Only `timekeeper` writes, under its lock. An NMI handler that interrupted the writer would wait
//! for ever, so [`try_now`] is all that one may call.

use core::sync::atomic::{AtomicU64, Ordering, fence};

use base::Instant;
use timekeeping::Scale;

use crate::vdso::{self, Shown};

/// On a cache line of its own.
#[repr(align(64))]
struct Words {
    sequence: AtomicU64,
    base_ticks: AtomicU64,
    base_ns: AtomicU64,
    multiplier: AtomicU64,
    wall_offset_ns: AtomicU64,
    raw_base_ticks: AtomicU64,
    raw_multiplier: AtomicU64,
}

/// The machine has one clock.
static WORDS: Words = Words {
    sequence: AtomicU64::new(0),
    base_ticks: AtomicU64::new(0),
    base_ns: AtomicU64::new(0),
    multiplier: AtomicU64::new(0),
    wall_offset_ns: AtomicU64::new(0),
    raw_base_ticks: AtomicU64::new(0),
    raw_multiplier: AtomicU64::new(0),
};

/// What `read` makes of the parameters, all of one state; `None` while they change.
#[inline(always)]
fn try_consistent<T>(read: impl Fn() -> T) -> Option<T> {
    let before = WORDS.sequence.load(Ordering::Acquire);
    let value = read();
    fence(Ordering::Acquire);
    let is_whole = before & 1 == 0 && before == WORDS.sequence.load(Ordering::Relaxed);
    is_whole.then_some(value)
}

/// The same, once they do not change.
#[inline(always)]
fn consistent<T>(read: impl Fn() -> T) -> T {
    loop {
        if let Some(value) = try_consistent(&read) {
            return value;
        }
        core::hint::spin_loop();
    }
}

#[inline(always)]
fn load(word: &AtomicU64) -> u64 {
    word.load(Ordering::Relaxed)
}

#[inline(always)]
fn scale() -> Scale {
    Scale {
        base_ticks: load(&WORDS.base_ticks),
        base_ns: load(&WORDS.base_ns),
        multiplier: load(&WORDS.multiplier),
    }
}

/// Nanoseconds since the machine started.
#[inline]
pub fn now() -> Instant {
    Instant::from_nanos(consistent(|| scale().at(super::cycles())))
}

/// The same, for NMI handlers too; `None` while the clock is being corrected.
pub fn try_now() -> Option<Instant> {
    try_consistent(|| scale().at(super::cycles())).map(Instant::from_nanos)
}

/// [`now`] by the speed that was measured at boot, whatever became of that since.
pub fn raw_now() -> Instant {
    Instant::from_nanos(consistent(|| shown().raw.at(super::cycles())))
}

/// Nanoseconds since 1970.
pub(super) fn wall_now_ns() -> u64 {
    consistent(|| {
        scale()
            .at(super::cycles())
            .wrapping_add(load(&WORDS.wall_offset_ns))
    })
}

/// Nanoseconds between 1970 and the machine's start.
pub(super) fn wall_offset_ns() -> u64 {
    load(&WORDS.wall_offset_ns)
}

/// The parameters; whole only for who keeps others from changing them.
pub(crate) fn shown() -> Shown {
    Shown {
        scale: scale(),
        wall_offset_ns: load(&WORDS.wall_offset_ns),
        raw: Scale {
            base_ticks: load(&WORDS.raw_base_ticks),
            base_ns: 0,
            multiplier: load(&WORDS.raw_multiplier),
        },
    }
}

/// Shows from now on what `change` makes of the present counter. By the timekeeper alone.
pub(super) fn publish(change: impl FnOnce(u64) -> Shown) {
    let sequence = WORDS.sequence.load(Ordering::Relaxed);
    WORDS.sequence.store(sequence | 1, Ordering::Relaxed);
    fence(Ordering::SeqCst);
    vdso::publish(|| {
        let shown = change(super::cycles());
        let store = |word: &AtomicU64, value| word.store(value, Ordering::Relaxed);
        store(&WORDS.base_ticks, shown.scale.base_ticks);
        store(&WORDS.base_ns, shown.scale.base_ns);
        store(&WORDS.multiplier, shown.scale.multiplier);
        store(&WORDS.wall_offset_ns, shown.wall_offset_ns);
        store(&WORDS.raw_base_ticks, shown.raw.base_ticks);
        store(&WORDS.raw_multiplier, shown.raw.multiplier);
        shown
    });
    WORDS.sequence.store(sequence + 2, Ordering::Release);
}
