//! Counters of one CPU that all may read.

use core::iter::Sum;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

/// What a CPU's caches hold, and did since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStats {
    /// Free frames that rest here, those of huge pages included.
    pub resting: u64,
    /// Requests for a frame or a huge page.
    pub requests: u64,
    /// Refills: requests that had to ask the zones.
    pub misses: u64,
    /// Times that a full cache gave a batch back.
    pub returns: u64,
    /// Frames zeroed while the CPU was idle.
    pub zeroed_idle: u64,
    /// Frames zeroed while somebody waited.
    pub zeroed_now: u64,
    /// Frames asked for as zeros and found so.
    pub found_zero: u64,
}

impl Sum for CacheStats {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, one| Self {
            resting: sum.resting + one.resting,
            requests: sum.requests + one.requests,
            misses: sum.misses + one.misses,
            returns: sum.returns + one.returns,
            zeroed_idle: sum.zeroed_idle + one.zeroed_idle,
            zeroed_now: sum.zeroed_now + one.zeroed_now,
            found_zero: sum.found_zero + one.found_zero,
        })
    }
}

/// A number that, by *One writer*, only its own CPU changes.
#[derive(Debug)]
pub(crate) struct Count(AtomicU64);

impl Count {
    const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    #[inline]
    pub fn add(&self, by: u64) {
        self.0.store(self.0.load(Relaxed).wrapping_add(by), Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// See [`CacheStats`].
#[derive(Debug)]
pub(crate) struct Counts {
    pub requests: Count,
    pub misses: Count,
    pub returns: Count,
    pub zeroed_idle: Count,
    pub zeroed_now: Count,
    pub found_zero: Count,
}

impl Counts {
    pub const fn new() -> Self {
        Self {
            requests: Count::new(),
            misses: Count::new(),
            returns: Count::new(),
            zeroed_idle: Count::new(),
            zeroed_now: Count::new(),
            found_zero: Count::new(),
        }
    }

    pub fn stats(&self, resting: u64) -> CacheStats {
        CacheStats {
            resting,
            requests: self.requests.get(),
            misses: self.misses.get(),
            returns: self.returns.get(),
            zeroed_idle: self.zeroed_idle.get(),
            zeroed_now: self.zeroed_now.get(),
            found_zero: self.found_zero.get(),
        }
    }
}
