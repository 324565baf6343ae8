//! The lock of a shard, and how a batch of frames gives way to who waits for it.
//!
//! The problem: a batch of frames takes long to go through a stack, and meanwhile a program
//! on another CPU spins, because it wants one connection of that shard.
//!
//! The idea: who cannot have the lock at once says so in `Slot::waiting`. Whoever takes
//! frames through the stack ([`LockedShard::receive`]) looks there after each, and lets go of the
//! lock until somebody has come in, for [`WAY_TURNS`] at most: a CPU that waits may itself be
//! held up by its host. Without anybody who waits this costs a load.
//!
//! Invariant **Between frames**: others may have been in the shard between two frames of a
//! batch, as between two batches. What is left of a batch stays where the next CPU that
//! polls finds it, so frames keep their order.

use alloc::boxed::Box;
use core::sync::atomic::{AtomicU32, Ordering};

use inet::Stack;
use mach::sync::{Spin, SpinGuard};
use mbuf::RxFrame;

use super::NetStack;
use super::env::Link;
use super::shard::Shard;
use super::wake::Wake;
use crate::device::poll::BATCH_FRAMES_MAX;

/// A lock on cache lines of its own.
#[repr(align(128))]
pub(crate) struct Slot {
    shard: Spin<Box<Shard>>,
    /// CPUs that wait for the lock.
    waiting: AtomicU32,
    /// Streams of programs in it ([`super::loopback`]).
    pub(super) streams: AtomicU32,
}

/// How long the lock is free for others who have not noticed yet, in turns of a spin loop.
const WAY_TURNS: u32 = 64;

impl Slot {
    pub(crate) fn new(shard: Box<Shard>) -> Self {
        Self {
            shard: Spin::new(shard),
            waiting: AtomicU32::new(0),
            streams: AtomicU32::new(0),
        }
    }

    #[inline]
    fn lock(&self) -> SpinGuard<'_, Box<Shard>> {
        self.shard.try_lock().unwrap_or_else(|| self.wait())
    }

    #[cold]
    fn wait(&self) -> SpinGuard<'_, Box<Shard>> {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let guard = self.shard.lock();
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        guard
    }

    /// Gives the others time to notice that the lock is free.
    fn let_in(&self) {
        let waiting = self.waiting.load(Ordering::Relaxed);
        for _ in 0..WAY_TURNS {
            if self.waiting.load(Ordering::Relaxed) != waiting {
                return;
            }
            mach::cpu::relax();
        }
    }
}

/// A shard that is ours for a while.
pub struct LockedShard<'s> {
    slot: &'s Slot,
    shard: SpinGuard<'s, Box<Shard>>,
    /// Dropped after `shard`, whose lock is free by then.
    wake: Option<Wake>,
}

impl Drop for LockedShard<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.shard.link.wake.is_some() {
            self.wake = self.shard.link.wake.take();
        }
    }
}

impl<'s> LockedShard<'s> {
    /// Waits for a shard's lock, and tells it the time; `None` if there is no such shard.
    #[inline]
    pub fn new(stack: &'s NetStack, number: u16) -> Option<Self> {
        let mut locked = Self::to_look(stack, number)?;
        locked.shard.link.now = mach::time::now();
        Some(locked)
    }

    /// Waits for a shard's lock, to look at what takes no time to change.
    #[inline]
    pub fn to_look(stack: &'s NetStack, number: u16) -> Option<Self> {
        let slot: &Slot = stack.shards.get(usize::from(number))?.get()?;
        let shard = slot.lock();
        Some(Self {
            slot,
            shard,
            wake: None,
        })
    }

    /// The stack and its environment.
    #[inline]
    pub fn parts(&mut self) -> (&mut Stack, &mut Link) {
        let shard = &mut **self.shard;
        (&mut shard.stack, &mut shard.link)
    }

    /// Takes the frames that `next` gives through the stack, [`BATCH_FRAMES_MAX`] at most, and
    /// gives way after each; says how many there were. `flush` is left to the caller.
    pub(crate) fn receive(&mut self, next: impl FnMut(&mut Link) -> Option<RxFrame>) -> usize {
        self.shard.link.keeps_wake = false;
        let count = self.receive_each(next);
        self.shard.link.keeps_wake = true;
        if count != 0 {
            self.shard.link.count_taken(count);
        }
        count
    }

    #[inline]
    fn receive_each(&mut self, mut next: impl FnMut(&mut Link) -> Option<RxFrame>) -> usize {
        for count in 0..BATCH_FRAMES_MAX {
            let (stack, link) = self.parts();
            let Some(frame) = next(link) else {
                return count;
            };
            stack.receive(link, frame);
            self.give_way();
        }
        BATCH_FRAMES_MAX
    }

    #[inline]
    fn give_way(&mut self) {
        let slot = self.slot;
        if slot.waiting.load(Ordering::Relaxed) != 0 {
            self.shard.unlocked(|| slot.let_in());
        }
    }
}
