//! A CPU's round of the rings and shards that it runs.
//!
//! # Problem
//! A CPU runs several shards of a card, each with its ring, and gives frames that a ring brings for
//! another one's shard to that shard's queue. Meanwhile a shard may move to another CPU
//! ([`elastic`](crate::elastic)), which waits for the ring's interrupt as soon as it has nothing to
//! do. A CPU that forgets a frame or a ring halts beside it, and the next frame finds it there.
//!
//! # Invariants
//! - *Rings first*: all rings are emptied before the first shard runs. So a CPU need not be called
//!   for what one of its rings brings to another one's shard.
//! - *Silence is answered for*: who takes frames from a ring keeps it from interrupting, and
//!   whoever runs it asks for the interrupt again before it halts. Who finds that the ring is
//!   another CPU's by now calls that one, which may have halted before.
//!
//! # Not here
//! Locks of rings and shards, and what either does (the shell's).

use base::CpuSet;

/// What a CPU can do with the rings and shards of a card. A shard has the number of the CPU that
/// had it first.
pub trait Runner {
    /// The shards that this CPU runs.
    fn own(&self) -> CpuSet;

    /// Whether it still runs a shard. Who has seen what the next one did with its ring knows that it
    /// does not.
    fn is_own(&self, shard: u16) -> bool;

    /// Has whoever runs a shard make a round soon.
    fn call(&self, shard: u16);

    /// Takes a batch of frames from a ring, each into the queue of its shard; true if there may be
    /// more. A ring that had any interrupts no longer.
    fn pull(&self, shard: u16) -> bool;

    /// Runs a shard with what is in its queue.
    fn run(&self, shard: u16);
}

/// One batch of each ring, through all shards of this CPU.
pub fn make(runner: &impl Runner) {
    let own = runner.own();
    for shard in numbers(own) {
        let has_more = runner.pull(shard);
        call_if(runner, shard, has_more);
    }
    numbers(own).for_each(|shard| runner.run(shard));
}

/// Looks at each ring of this CPU, which may keep it from interrupting, and calls for those that
/// have frames; true if anybody was called.
pub fn look(runner: &impl Runner, has_frames: impl Fn(u16) -> bool) -> bool {
    numbers(runner.own()).fold(false, |any, shard| {
        let has_frames = has_frames(shard);
        call_if(runner, shard, has_frames) || any
    })
}

fn call_if(runner: &impl Runner, shard: u16, has_frames: bool) -> bool {
    let is_due = has_frames || !runner.is_own(shard);
    if is_due {
        runner.call(shard);
    }
    is_due
}

fn numbers(shards: CpuSet) -> impl Iterator<Item = u16> {
    shards.iter().map(|first| first.0 as u16)
}

#[cfg(test)]
mod tests {
    use core::cell::{Cell, RefCell};

    use base::CpuId;
    use std::vec::Vec;

    use super::*;

    const SHARDS: usize = 3;
    const THIS: u16 = 0;
    const OTHER: u16 = 1;

    /// A ring and its shard, as the machine knows them.
    #[derive(Default)]
    struct Pair {
        /// Who runs both.
        cpu: u16,
        /// For which shards frames are in the ring.
        ring: Vec<u16>,
        interrupts: bool,
        /// Frames for the shard that it has not seen.
        queue: usize,
        is_called: bool,
    }

    /// A machine in which a ring may move while this CPU is about to look at it.
    #[derive(Default)]
    struct Machine {
        pairs: RefCell<[Pair; SHARDS]>,
        /// This one moves, and a frame comes by it, once.
        moving: Cell<Option<u16>>,
    }

    impl Machine {
        fn with<R>(&self, shard: u16, act: impl FnOnce(&mut Pair) -> R) -> R {
            act(&mut self.pairs.borrow_mut()[usize::from(shard)])
        }

        /// The other CPU is called, finds nothing and halts; then there is a frame.
        fn move_now(&self, shard: u16) {
            if self.moving.get() == Some(shard) {
                self.moving.set(None);
                self.with(shard, |pair| {
                    (pair.cpu, pair.interrupts) = (OTHER, true);
                    pair.ring.push(THIS);
                });
            }
        }

        /// What a halted CPU would never notice.
        fn is_forgotten(&self, shard: u16) -> bool {
            self.with(shard, |pair| {
                let is_heard = pair.interrupts || pair.cpu == THIS;
                !pair.is_called && (pair.queue != 0 || !is_heard)
            })
        }
    }

    impl Runner for Machine {
        fn own(&self) -> CpuSet {
            let pairs = self.pairs.borrow();
            let own = (0..).zip(&*pairs).filter(|(_, pair)| pair.cpu == THIS);
            own.map(|(shard, _)| CpuId(shard)).collect()
        }

        fn is_own(&self, shard: u16) -> bool {
            self.with(shard, |pair| pair.cpu == THIS)
        }

        fn call(&self, shard: u16) {
            self.with(shard, |pair| pair.is_called = true);
        }

        fn pull(&self, shard: u16) -> bool {
            self.move_now(shard);
            let frames = self.with(shard, |pair| core::mem::take(&mut pair.ring));
            if !frames.is_empty() {
                self.with(shard, |pair| pair.interrupts = false);
            }
            for target in frames {
                self.with(target, |pair| pair.queue += 1);
                if !self.is_own(target) {
                    self.call(target);
                }
            }
            false
        }

        fn run(&self, shard: u16) {
            self.with(shard, |pair| pair.queue = 0);
        }
    }

    #[test]
    fn a_frame_for_the_shard_of_any_ring_is_seen_in_the_round_that_takes_it() {
        for ring in 0..SHARDS as u16 {
            for shard in 0..SHARDS as u16 {
                let machine = Machine::default();
                machine.with(ring, |pair| pair.ring.push(shard));
                make(&machine);
                assert!(!machine.is_forgotten(shard), "ring {ring}, shard {shard}");
            }
        }
    }

    #[test]
    fn a_ring_that_moved_before_its_frame_was_taken_is_not_left_silent() {
        for ring in 0..SHARDS as u16 {
            let machine = Machine::default();
            machine.moving.set(Some(ring));
            make(&machine);
            assert!(!machine.is_forgotten(ring), "ring {ring}");
        }
    }

    #[test]
    fn a_ring_that_moved_before_it_was_looked_at_is_not_left_silent() {
        for ring in 0..SHARDS as u16 {
            let machine = Machine::default();
            machine.moving.set(Some(ring));
            let is_found = look(&machine, |shard| {
                machine.move_now(shard);
                machine.with(shard, |pair| pair.interrupts = false);
                false
            });
            assert!(is_found && !machine.is_forgotten(ring), "ring {ring}");
        }
    }

    #[test]
    fn who_looks_calls_for_the_rings_that_have_frames_and_for_no_others() {
        let machine = Machine::default();
        assert!(!look(&machine, |_| false));
        assert!(look(&machine, |shard| shard == 1));
        let is_called = |shard| machine.with(shard, |pair| pair.is_called);
        assert_eq!([0, 1, 2].map(is_called), [false, true, false]);
    }
}
