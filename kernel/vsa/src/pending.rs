//! Rings that look for submissions once more: a request of theirs has ended, or a turn took as many as it may.
//!
//! Each stands in the list at most once, and has its place in it from its making on, so nothing is allocated where ends are
//! told. The one that stands longest is served first.

use alloc::collections::VecDeque;
use alloc::sync::Arc;

use mach::mem::fallible::TryGrow;
use mach::sync::Spin;
use sched::{Softirq, raise};
use sync::{Error, Result};

/// A ring as the list sees it.
pub trait Served: Send + Sync {
    /// Has a turn; it is not in the list any more, and puts itself there if there is more.
    fn go_on(self: Arc<Self>);
}

/// Rings of the machine.
const RINGS_MAX: usize = 512;

struct Pending {
    rings: VecDeque<Arc<dyn Served>>,
    places: usize,
}

/// Global as the disks' softirq is, which serves them on whichever CPU.
static PENDING: Spin<Pending> = Spin::new(Pending {
    rings: VecDeque::new(),
    places: 0,
});

/// A ring's place in the list.
pub struct Place(());

impl Place {
    /// Errors: `NoBuffers` if the machine has as many rings as it may, `OutOfMemory`.
    pub fn new() -> Result<Self> {
        let mut pending = PENDING.lock();
        if pending.places == RINGS_MAX {
            return Err(Error::NoBuffers);
        }
        let more = pending.places + 1 - pending.rings.len().min(pending.places);
        pending.rings.make_room(more)?;
        pending.places += 1;
        Ok(Self(()))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        PENDING.lock().places -= 1;
    }
}

/// Puts a ring at the end that is not in the list.
#[inline]
pub fn push(ring: Arc<dyn Served>) {
    PENDING.lock().rings.push_back(ring);
}

/// The same where nothing that ends leads to the list.
pub fn push_and_raise(ring: Arc<dyn Served>) {
    push(ring);
    raise(Softirq::Block);
}

/// Serves the rings that stand in the list now, each once.
pub fn go_on() {
    let count = PENDING.lock().rings.len();
    for _ in 0..count {
        let Some(ring) = PENDING.lock().rings.pop_front() else {
            return;
        };
        ring.go_on();
    }
}
