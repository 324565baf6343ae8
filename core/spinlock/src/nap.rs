//! When a CPU that waits for a lock gives its time away, and for how long.
//!
//! The problem: sections are short, so who has waited for long waits for a CPU that the host has stopped. That is
//! not run again before its turn on the host, milliseconds later, and a virtual CPU that spins until then
//! takes that turn from it.
//!
//! The idea: after more turns than a section takes, the CPU halts between two looks, each time for about as long as it has
//! waited already. So it looks ten times where it would have looked ten thousand times, and gets the lock
//! after twice the wait at most. Nobody wakes it: a release stays a single store.

use base::Duration;

/// Turns for which a CPU that the host runs may have a lock.
const SECTION_TURNS: u32 = 512;
/// A turn's length, about: it differs from machine to machine by a factor of ten.
const TURN_NS: u32 = 64;
/// Below, to be woken takes as long as the nap.
const SHORTEST_NS: u32 = 50_000;
/// As long as a host leaves a stopped CPU stopped at least. What a lock costs that is in great demand stays bounded.
const LONGEST_NS: u32 = 1_000_000;

/// A halt between two looks at a lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Nap {
    /// How long it lasts at most.
    pub span: Duration,
    /// As many turns take as long.
    pub turns: u32,
}

impl Nap {
    /// For who has waited for so many turns, if that was long.
    pub fn after(turns: u32) -> Option<Self> {
        if turns < SECTION_TURNS {
            return None;
        }
        let nanos = turns.saturating_mul(TURN_NS);
        let nanos = nanos.clamp(SHORTEST_NS, LONGEST_NS);
        Some(Self {
            span: Duration::from_nanos(nanos.into()),
            turns: nanos / TURN_NS,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_for_a_section_does_not_nap() {
        assert_eq!(Nap::after(0), None);
        assert_eq!(Nap::after(SECTION_TURNS - 1), None);
        assert!(Nap::after(SECTION_TURNS).is_some());
    }

    #[test]
    fn naps_are_as_long_as_the_wait_before_within_bounds() {
        let span_ns = |turns| Nap::after(turns).map(|nap| nap.span.as_nanos());
        assert_eq!(span_ns(SECTION_TURNS), Some(50_000));
        assert_eq!(span_ns(5000), Some(320_000));
        assert_eq!(span_ns(u32::MAX), Some(1_000_000));
    }

    #[test]
    fn a_nap_counts_as_the_turns_that_fit_into_it() {
        assert_eq!(Nap::after(5000).map(|nap| nap.turns), Some(5000));
        assert_eq!(Nap::after(u32::MAX).map(|nap| nap.turns), Some(15_625));
    }

    #[test]
    fn four_milliseconds_are_a_few_looks() {
        let (mut turns, mut looks) = (SECTION_TURNS, 0);
        while let Some(nap) = Nap::after(turns).filter(|_| turns < 4_000_000 / TURN_NS) {
            turns += nap.turns;
            looks += 1;
        }
        assert!((4..=10).contains(&looks), "{looks}");
    }
}
