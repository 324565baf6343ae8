//! Caches that give up what they can make again: those that register, and the kernel stacks
//! of threads that have ended.

use alloc::vec::Vec;

use mach::sync::Spin;
use sched::resched_point;

/// Gives up what nobody uses. Called in ordinary context, without a spin lock; it must not
/// wait for a program.
pub type Shrink = fn();

/// Caches of the whole machine that can give memory back; said at boot.
static CACHES: Spin<Vec<Shrink>> = Spin::new(Vec::new());

/// Adds a cache; at boot.
pub fn register(cache: Shrink) {
    CACHES.lock().push(cache);
}

/// Asks all caches; whether any frame became free.
pub fn shrink() -> bool {
    let before = mach::mem::stats().free;
    for index in 0.. {
        let cache = CACHES.lock().get(index).copied();
        match cache {
            Some(shrink) => shrink(),
            None => break,
        }
    }
    mach::mem::trim(&mut resched_point);
    mach::mem::stats().free > before
}
