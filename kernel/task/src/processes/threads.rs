//! Finding a thread by its number.
//!
//! Every fork and every end changes the table, from all CPUs at once, so it has parts with a lock
//! each. Numbers are given in turn, and so are the parts.

use alloc::collections::BTreeMap;
use alloc::sync::{Arc, Weak};

use mach::sync::{Spin, SpinGuard};

use super::{Thread, Tid};

const PARTS: usize = 16;

type Threads = BTreeMap<Tid, Weak<Thread>>;

/// On a cache line of its own.
#[repr(align(64))]
struct Part(Spin<Threads>);

/// All threads by number: that is how programs name each other's.
static TABLE: [Part; PARTS] = [const { Part(Spin::new(BTreeMap::new())) }; PARTS];

/// The part for a number; each number has one.
fn part(id: Tid) -> Option<SpinGuard<'static, Threads>> {
    Some(TABLE.get(id as usize % PARTS)?.0.lock())
}

/// The living thread of that number.
pub fn find_thread(id: Tid) -> Option<Arc<Thread>> {
    part(id)?.get(&id)?.upgrade()
}

/// Threads that live, for the leak check and sysinfo(2).
pub fn thread_count() -> usize {
    TABLE.iter().map(|part| part.0.lock().len()).sum()
}

pub(super) fn register(thread: &Arc<Thread>) {
    if let Some(mut threads) = part(thread.id()) {
        threads.insert(thread.id(), Arc::downgrade(thread));
    }
}

pub(super) fn unregister(id: Tid) {
    if let Some(mut threads) = part(id) {
        threads.remove(&id);
    }
}
