//! By which rules a thread competes for a CPU (sched(7)).
//!
//! A [`Rank`] orders all threads: those with a real-time policy stand by priority above all
//! others, and these share the last rank, within which virtual run time decides. Who has the
//! better rank runs at once. Among equals of a real-time rank whoever came first runs until it
//! waits, yields, or, under `RoundRobin`, has used its round.

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

    /// Its place among all policies.
    pub fn rank(self) -> Rank {
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

    pub(crate) fn to_bits(self) -> u32 {
        self.number() << 8 | u32::from(self.priority())
    }

    pub(crate) fn from_bits(bits: u32) -> Self {
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
pub struct Rank(pub(crate) u8);

impl Rank {
    /// That of all threads without a real-time policy.
    pub const FAIR: Self = Self(PRIORITY_MAX);

    /// Whether it goes before all that share fairly.
    #[inline]
    pub fn is_realtime(self) -> bool {
        self < Self::FAIR
    }
}
