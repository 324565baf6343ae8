//! A look at a card's memory for frames, by a thread that has nothing else to do and the lock of its sockets.
//!
//! Others that want the lock would wait for as long: who does says so ([`Wanting`]), and no look goes on then.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use base::Instant;
use hal::FramePort;

use crate::clock::Clock;

static WANTING: AtomicUsize = AtomicUsize::new(0);

/// A thread that waits for what one has locked that may look at a card, until this is dropped. In a process that is forked
/// meanwhile no look goes on any more, which costs it calls only.
pub struct Wanting(());

impl Wanting {
    /// From now on.
    pub fn begin() -> Self {
        WANTING.fetch_add(1, Relaxed);
        Self(())
    }
}

impl Drop for Wanting {
    fn drop(&mut self) {
        WANTING.fetch_sub(1, Relaxed);
    }
}

/// Looks until then at the latest; whether there are frames. It is a function of its own because `bench-echo` says what it
/// takes: time in which there is nothing to do.
#[inline(never)]
pub(crate) fn look_until(port: &mut dyn FramePort, end: Instant) -> bool {
    let mut clock = Clock::new();
    loop {
        if port.has_received() {
            return true;
        }
        if WANTING.load(Relaxed) != 0 || clock.now() >= end.as_nanos() {
            return false;
        }
        std::hint::spin_loop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::monotonic_nanos;
    use crate::quiet_port::Quiet;

    #[test]
    fn a_look_ends_with_frames_with_its_time_and_when_another_thread_wants_the_lock() {
        let now = || Instant::from_nanos(monotonic_nanos());
        let never = Instant::from_nanos(u64::MAX);
        let mut card = Quiet {
            finding_look: 1000,
            ..Quiet::default()
        };
        let looks = card.looks.clone();
        assert!(look_until(&mut card, never));
        assert_eq!(looks.swap(0, Relaxed), 1000);
        assert!(!look_until(&mut card, now()));
        assert_eq!(looks.load(Relaxed), 1);
        let wanting = Wanting::begin();
        assert!(!look_until(&mut card, never));
        assert_eq!(looks.load(Relaxed), 2);
        drop(wanting);
        assert!(look_until(&mut card, never));
    }
}
