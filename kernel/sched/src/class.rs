//! By which rules a thread competes for a CPU (sched(7)).
//!
//! A [`Rank`] orders all threads: those with a real-time policy stand by priority above all
//! others, and these share the last rank, within which virtual run time decides. Who has the
//! better rank runs at once. Among equals of a real-time rank whoever came first runs until it
//! waits, yields, or, under `RoundRobin`, has used its [`ROUND`].
//!
//! A thread that holds a lock for which better ones wait is *lent* the best of their ranks
//! (`futex::pi`); it then counts as such a thread until it gives the lock up.

use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};

use base::Duration;

/// How long a thread of [`Policy::RoundRobin`] runs before others of its priority.
pub const ROUND: Duration = Duration::from_millis(100);
/// The highest priority of real-time threads; the lowest is 1.
pub const PRIORITY_MAX: u8 = 99;

/// The rules for one thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Policy {
    /// A fair share by nice value.
    Normal,
    /// The same, but it does not hurry when it wakes.
    Batch,
    /// Next to nothing while others want the CPU.
    Idle,
    /// By priority, first in, first out.
    Fifo(u8),
    /// By priority, in turns.
    RoundRobin(u8),
}

impl Policy {
    /// Its priority, 0 if it is not real-time.
    pub fn priority(self) -> u8 {
        match self {
            Self::Fifo(priority) | Self::RoundRobin(priority) => priority,
            Self::Normal | Self::Batch | Self::Idle => 0,
        }
    }

    /// Whether it goes before all that share fairly.
    pub fn is_realtime(self) -> bool {
        self.priority() != 0
    }

    fn rank(self) -> Rank {
        Rank(PRIORITY_MAX.saturating_sub(self.priority()))
    }

    /// Linux's number of it (`SCHED_*`).
    pub fn number(self) -> u32 {
        match self {
            Self::Normal => 0,
            Self::Fifo(_) => 1,
            Self::RoundRobin(_) => 2,
            Self::Batch => 3,
            Self::Idle => 5,
        }
    }

    fn to_bits(self) -> u32 {
        self.number() << 8 | u32::from(self.priority())
    }

    fn from_bits(bits: u32) -> Self {
        let priority = bits as u8;
        match bits >> 8 {
            1 => Self::Fifo(priority),
            2 => Self::RoundRobin(priority),
            3 => Self::Batch,
            5 => Self::Idle,
            _ => Self::Normal,
        }
    }
}

/// The order of threads: the lower goes first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Rank(u8);

impl Rank {
    /// That of all threads without a real-time policy.
    pub const FAIR: Self = Self(PRIORITY_MAX);

    /// Whether it goes before all that share fairly.
    #[inline]
    pub fn is_realtime(self) -> bool {
        self < Self::FAIR
    }

    /// As one byte.
    pub(crate) const fn to_byte(self) -> u8 {
        self.0
    }

    /// What [`Self::to_byte`] gave.
    pub(crate) fn from_byte(byte: u8) -> Self {
        Self(byte)
    }
}

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
    pub(crate) fn lend(&self, rank: Rank) -> bool {
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
    pub(crate) fn is_round_over(&self, now: Duration) -> bool {
        let used_ns = self.round_ns.load(Ordering::Relaxed) + now.as_nanos();
        matches!(self.policy(), Policy::RoundRobin(_)) && used_ns >= ROUND.as_nanos()
    }

    /// It makes way for a better one, but stays in front of its equals.
    pub(crate) fn keep_place(&self) {
        self.keeps_place.store(true, Ordering::Relaxed);
    }

    /// A new round begins, behind its equals.
    pub(crate) fn end_round(&self) {
        self.round_ns.store(0, Ordering::Relaxed);
    }

    /// Whether it goes to the front of its equals; asked once.
    pub(crate) fn take_place(&self) -> bool {
        self.keeps_place.swap(false, Ordering::Relaxed)
    }
}
