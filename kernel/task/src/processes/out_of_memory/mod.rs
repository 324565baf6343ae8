//! Which process ends when no memory is left, and how long its end is waited for.
//!
//! Memory is asked for by `reclaim`, once caches have nothing more to give. The process that
//! weighs most ([`victim`]) is killed, and whoever needs memory waits until its memory is free:
//! nobody else is killed before, unless that takes too long.

mod victim;

use alloc::sync::{Arc, Weak};
use core::sync::atomic::{AtomicU64, Ordering};

use base::Duration;
use mach::sync::Spin;
use mm::reclaim::{self, Programs};
use sched::Flags;
use sync::Wait;

pub use victim::{ADJUSTMENT_MAX, ADJUSTMENT_MIN, score};

use super::{Process, current};

/// How long the end of a victim is waited for before another one is chosen.
const DEATH_PATIENCE: Duration = Duration::from_secs(2);

/// How many processes were chosen to be killed for their memory. A figure of the machine.
static KILLS: AtomicU64 = AtomicU64::new(0);
/// Who was killed last, and how long its end is waited for. One at a time, for memory is the
/// machine's.
static DYING: Spin<Option<(Weak<Process>, Wait)>> = Spin::new(None);

/// Lets `reclaim` end processes; once at boot.
pub(super) fn init() {
    reclaim::ask_of(Programs {
        wanted_failure: || current().fail_nth.take_failure(),
        end_one: kill_one,
        is_one_hogging: || victim::choose().is_some_and(|(_, weight)| victim::is_hog(weight)),
    });
}

/// How many processes were killed for their memory since the start.
pub fn kill_count() -> u64 {
    KILLS.load(Ordering::Relaxed)
}

/// Waits for the end of the last victim, or kills the heaviest process and waits for that;
/// false if that is the caller's own.
fn kill_one() -> bool {
    if let Some((process, wait)) = dying() {
        await_end(&process, wait);
        return true;
    }
    let me = current();
    let process = match victim::choose() {
        Some((process, _)) => process,
        // All others are ending or protected.
        None => me.process.clone(),
    };
    victim::kill(&process);
    KILLS.fetch_add(1, Ordering::Relaxed);
    let wait = Wait::UNINTERRUPTIBLE.until(mach::time::now() + DEATH_PATIENCE);
    let before = DYING.lock().replace((Arc::downgrade(&process), wait));
    drop(before);
    if me.flags().contains(Flags::EXIT) {
        return false;
    }
    await_end(&process, wait);
    true
}

/// The last victim, while its memory is on its way back. It relieves nobody itself any more, so
/// that another thread comes here before it has ended.
fn dying() -> Option<(Arc<Process>, Wait)> {
    let mut dying = DYING.lock();
    let (process, wait) = dying.as_ref()?;
    match process.upgrade().filter(|process| !process.has_ended()) {
        Some(process) if mach::time::now() < wait.deadline => Some((process, *wait)),
        _ => {
            *dying = None;
            None
        }
    }
}

/// After the deadline the next one is chosen: this one does not count any more.
fn await_end(process: &Process, wait: Wait) {
    let ended = || process.has_ended().then_some(());
    let _ = process.ended.queue.wait(wait, ended);
}
