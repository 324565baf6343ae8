//! How often the kernel is asked for its part of an epoll set while ours has always something.
//!
//! A program that is busy with our sockets must not starve its pipes and timers, and should not pay a system call
//! each round for them. So the kernel is asked after so many rounds, or after so much time, whichever comes
//! first. Rounds in which nothing of ours is ready ask it anyway.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use base::Instant;

/// Rounds without a question.
const ROUNDS_MAX: u32 = 64;
/// Time without one.
const NANOS_MAX: u64 = 1_000_000;

/// When the kernel was asked last.
#[derive(Debug, Default)]
pub struct Pace {
    rounds: AtomicU32,
    asked_nanos: AtomicU64,
}

impl Pace {
    /// Whether to ask in this round, in which something of ours is ready.
    pub fn is_due(&self, now: Instant) -> bool {
        let rounds = self.rounds.fetch_add(1, Relaxed) + 1;
        let since = now
            .as_nanos()
            .saturating_sub(self.asked_nanos.load(Relaxed));
        let is_due = rounds >= ROUNDS_MAX || since >= NANOS_MAX;
        if is_due {
            self.note_asked(now);
        }
        is_due
    }

    /// It was asked.
    pub fn note_asked(&self, now: Instant) {
        self.rounds.store(0, Relaxed);
        self.asked_nanos.store(now.as_nanos(), Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_is_asked_once_in_so_many_rounds_and_after_so_much_time() {
        let pace = Pace::default();
        let at = |nanos| Instant::from_nanos(10 * NANOS_MAX + nanos);
        pace.note_asked(at(0));
        let asked = (0..3 * ROUNDS_MAX).filter(|_| pace.is_due(at(1))).count();
        assert_eq!(asked, 3);
        assert!(!pace.is_due(at(NANOS_MAX)));
        assert!(pace.is_due(at(NANOS_MAX + 1)));
    }
}
