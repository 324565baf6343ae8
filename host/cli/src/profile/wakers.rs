//! Who woke whom, and when: to be found when the wait is reported, which is later.

use std::collections::{HashMap, VecDeque};

use super::frame::Frame;

/// Wake-ups kept of one thread; older ones belong to waits that nobody will report.
const KEPT_MAX: usize = 10_000;

/// Who woke a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waker {
    /// The name of the thread that ran where the wake-up came from.
    pub thread: String,
    /// Its process and itself.
    pub ids: (u32, u32),
    /// The kernel's functions that led to the wake-up, outermost first.
    pub frames: Vec<Frame>,
}

/// The wake-ups of all threads.
#[derive(Debug, Default)]
pub struct Wakers {
    by_thread: HashMap<u32, VecDeque<(u64, Waker)>>,
}

impl Wakers {
    /// The thread `woken` was woken at `cycles`.
    pub fn add(&mut self, woken: u32, cycles: u64, waker: Waker) {
        let wakes = self.by_thread.entry(woken).or_default();
        if wakes.len() == KEPT_MAX {
            wakes.pop_front();
        }
        // CPUs report each for itself, so a wake-up may come late.
        let after = wakes.partition_point(|(at, _)| *at <= cycles);
        wakes.insert(after, (cycles, waker));
    }

    /// Who ended the wait of `thread` that lasted from `start` to `end`; forgets what was before.
    pub fn take(&mut self, thread: u32, start: u64, end: u64) -> Option<Waker> {
        let wakes = self.by_thread.get_mut(&thread)?;
        let mut last = None;
        while wakes.front().is_some_and(|(at, _)| *at <= end) {
            last = wakes.pop_front();
        }
        last.filter(|(at, _)| *at >= start).map(|(_, waker)| waker)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_was_ended_by_the_last_wake_up_in_it() {
        let named = |name: &str| Waker {
            thread: name.into(),
            ids: (1, 1),
            frames: Vec::new(),
        };
        let mut wakers = Wakers::default();
        for (cycles, name) in [(30, "c"), (10, "a"), (20, "b")] {
            wakers.add(1, cycles, named(name));
        }
        assert_eq!(wakers.take(1, 5, 25), Some(named("b")));
        assert_eq!(wakers.take(1, 26, 28), None);
        assert_eq!(wakers.take(1, 29, 31), Some(named("c")));
        assert_eq!(wakers.take(2, 0, 99), None);
    }
}
