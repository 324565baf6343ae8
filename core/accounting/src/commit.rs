//! How much memory may be promised.
//!
//! A program that maps memory is promised pages that it may never touch. Promises may exceed
//! what is there (overcommitment); the policy says how far. What counts as a promise is the
//! caller's business; here is only the sum and the decision.

/// How far promises may go (`/proc/sys/vm/overcommit_memory`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Policy {
    /// Each single promise may be as large as all memory; their sum does not matter (0).
    Heuristic,
    /// Anything goes (1).
    Always,
    /// All promises together keep to a limit of this many bytes (2).
    Limited(u64),
}

impl Policy {
    /// Whether `more` bytes may be promised beside the `promised` ones, with `total` bytes of
    /// memory in the machine. Nothing more is always allowed.
    pub fn admits(self, promised: u64, more: u64, total: u64) -> bool {
        match self {
            _ if more == 0 => true,
            Self::Heuristic => more <= total,
            Self::Always => true,
            Self::Limited(limit) => promised.saturating_add(more) <= limit,
        }
    }
}

/// What the sum of promises may reach under [`Policy::Limited`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Limit {
    /// So many hundredths of memory (`overcommit_ratio`).
    Percent(u64),
    /// So many KiB (`overcommit_kbytes`).
    Kibibytes(u64),
}

impl Limit {
    /// In bytes, with `total` bytes of memory.
    pub fn bytes(self, total: u64) -> u64 {
        match self {
            Self::Percent(percent) => {
                let bytes = u128::from(total) * u128::from(percent) / 100;
                u64::try_from(bytes).unwrap_or(u64::MAX)
            }
            Self::Kibibytes(kibibytes) => kibibytes.saturating_mul(1024),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_heuristic_refuses_only_what_could_never_be_there() {
        assert!(Policy::Heuristic.admits(10_000, 1000, 1000));
        assert!(!Policy::Heuristic.admits(0, 1001, 1000));
    }

    #[test]
    fn always_means_always() {
        assert!(Policy::Always.admits(u64::MAX, u64::MAX, 1));
    }

    #[test]
    fn a_limit_holds_for_the_sum_and_does_not_overflow() {
        assert!(Policy::Limited(100).admits(60, 40, 1));
        assert!(!Policy::Limited(100).admits(60, 41, 1000));
        assert!(!Policy::Limited(u64::MAX - 1).admits(u64::MAX, 1, 1));
    }

    #[test]
    fn what_asks_for_nothing_is_never_refused() {
        assert!(Policy::Limited(100).admits(200, 0, 1));
    }

    #[test]
    fn a_limit_is_a_share_of_memory_or_a_figure() {
        assert_eq!(Limit::Percent(50).bytes(1000), 500);
        assert_eq!(Limit::Percent(u64::MAX).bytes(u64::MAX), u64::MAX);
        assert_eq!(Limit::Kibibytes(3).bytes(1000), 3072);
        assert_eq!(Limit::Kibibytes(u64::MAX).bytes(1000), u64::MAX);
    }
}
