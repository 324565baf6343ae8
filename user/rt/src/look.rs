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
    use hal::{Capabilities, PortCounters, Stall};
    use mbuf::{RxFrame, TxFrame};

    use super::*;
    use crate::monotonic_nanos;

    /// A card to which a frame has come when it is looked at for the last time.
    struct Looked {
        looks_left: u32,
    }

    impl FramePort for Looked {
        fn mac(&self) -> [u8; 6] {
            [2; 6]
        }
        fn mtu(&self) -> u16 {
            1500
        }
        fn capabilities(&self) -> Capabilities {
            Capabilities::default()
        }
        fn transmit(&mut self, frame: TxFrame) -> Result<(), TxFrame> {
            Err(frame)
        }
        fn kick(&mut self) {}
        fn receive(&mut self, _: usize, _: &mut dyn FnMut(RxFrame)) -> usize {
            0
        }
        fn unsent(&mut self) -> usize {
            0
        }
        fn reclaim(&mut self) {}
        fn has_received(&mut self) -> bool {
            self.looks_left -= 1;
            self.looks_left == 0
        }
        fn arm(&mut self) -> bool {
            false
        }
        fn disarm(&mut self) {}
        fn counters(&mut self) -> PortCounters {
            PortCounters::default()
        }
        fn watch(&mut self, _: Instant) -> Option<Stall> {
            None
        }
    }

    #[test]
    fn a_look_ends_with_frames_with_its_time_and_when_another_thread_wants_the_lock() {
        let now = || Instant::from_nanos(monotonic_nanos());
        let never = Instant::from_nanos(u64::MAX);
        let mut card = Looked { looks_left: 1000 };
        assert!(look_until(&mut card, never));
        assert_eq!(card.looks_left, 0);
        card.looks_left = 1000;
        assert!(!look_until(&mut card, now()));
        assert_eq!(card.looks_left, 999);
        let wanting = Wanting::begin();
        assert!(!look_until(&mut card, never));
        assert_eq!(card.looks_left, 998);
        drop(wanting);
        assert!(look_until(&mut card, never));
    }
}
