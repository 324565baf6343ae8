//! The policy of a thread, and what follows from it.
//!
//! A thread that holds a lock for which better ones wait is *lent* the best of their ranks
//! (`futex::pi`); it then counts as such a thread until it gives the lock up.

use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};

use base::Duration;

use crate::policy::{Policy, Rank};

/// How long a thread of [`Policy::RoundRobin`] runs before others of its priority.
pub const ROUND: Duration = Duration::from_millis(100);

/// The policy of a thread, and what follows from it.
pub struct Class {
    policy: AtomicU32,
    own: AtomicU8,
    lent: AtomicU8,
    /// A child starts without what its maker was allowed (SCHED_RESET_ON_FORK).
    resets_on_fork: AtomicBool,
    /// Nanoseconds of the round used up to the last switch.
    round_ns: AtomicU64,
    /// It gives the CPU away, but not its place in front of its equals.
    keeps_place: AtomicBool,
}

impl Default for Class {
    fn default() -> Self {
        Self {
            policy: AtomicU32::new(Policy::Normal.to_bits()),
            own: AtomicU8::new(Rank::FAIR.0),
            lent: AtomicU8::new(Rank::FAIR.0),
            resets_on_fork: AtomicBool::new(false),
            round_ns: AtomicU64::new(0),
            keeps_place: AtomicBool::new(false),
        }
    }
}

impl Class {
    /// The policy.
    pub fn policy(&self) -> Policy {
        Policy::from_bits(self.policy.load(Ordering::Relaxed))
    }

    pub(crate) fn set_policy(&self, policy: Policy) {
        self.policy.store(policy.to_bits(), Ordering::Relaxed);
        self.own.store(policy.rank().0, Ordering::Relaxed);
        self.round_ns.store(0, Ordering::Relaxed);
    }

    /// The rank by which it competes: its own, or a better one that it was lent.
    #[inline]
    pub fn rank(&self) -> Rank {
        let own = self.own.load(Ordering::Relaxed);
        Rank(own.min(self.lent.load(Ordering::Relaxed)))
    }

    /// Lends it a rank in place of what it was lent before; `FAIR` takes that back. Whether
    /// its rank changed.
    pub fn lend(&self, rank: Rank) -> bool {
        let before = self.rank();
        self.lent.store(rank.0, Ordering::Relaxed);
        self.rank() != before
    }

    /// Whether children start without its policy.
    pub fn resets_on_fork(&self) -> bool {
        self.resets_on_fork.load(Ordering::Relaxed)
    }

    pub(crate) fn set_resets_on_fork(&self, resets: bool) {
        self.resets_on_fork.store(resets, Ordering::Relaxed);
    }

    /// It had the CPU for so long.
    pub(crate) fn count_round(&self, used_ns: u64) {
        if matches!(self.policy(), Policy::RoundRobin(_)) {
            self.round_ns.fetch_add(used_ns, Ordering::Relaxed);
        }
    }

    /// Whether its round is over, having had the CPU for `now` since the last switch.
    pub fn is_round_over(&self, now: Duration) -> bool {
        let used_ns = self.round_ns.load(Ordering::Relaxed) + now.as_nanos();
        matches!(self.policy(), Policy::RoundRobin(_)) && used_ns >= ROUND.as_nanos()
    }

    /// It has to make way, having had the CPU for `now` since the last switch: at the end of its
    /// round it goes behind its equals, otherwise it stays in front of them.
    pub fn make_way(&self, now: Duration) {
        if !self.rank().is_realtime() {
            return;
        }
        match self.is_round_over(now) {
            true => self.round_ns.store(0, Ordering::Relaxed),
            false => self.keep_place(),
        }
    }

    /// When it comes to a queue next, it goes in front of its equals.
    pub(crate) fn keep_place(&self) {
        self.keeps_place.store(true, Ordering::Relaxed);
    }

    /// Whether it goes to the front of its equals; asked once.
    pub(crate) fn take_place(&self) -> bool {
        let keeps_place = self.keeps_place.load(Ordering::Relaxed);
        if keeps_place {
            self.forget_place();
        }
        keeps_place
    }

    /// It found nobody to make way for.
    pub fn forget_place(&self) {
        self.keeps_place.store(false, Ordering::Relaxed);
    }
}
