//! Finding a thread by its number.

use alloc::collections::BTreeMap;
use alloc::sync::{Arc, Weak};

use mach::sync::Spin;

use super::{Thread, Tid};

/// All threads by number: that is how programs name each other's.
static THREADS: Spin<BTreeMap<Tid, Weak<Thread>>> = Spin::new(BTreeMap::new());

/// The living thread of that number.
pub fn find_thread(id: Tid) -> Option<Arc<Thread>> {
    THREADS.lock().get(&id)?.upgrade()
}

/// Threads that live, for the leak check and sysinfo(2).
pub fn thread_count() -> usize {
    THREADS.lock().len()
}

pub(super) fn register(thread: &Arc<Thread>) {
    THREADS.lock().insert(thread.id(), Arc::downgrade(thread));
}

pub(super) fn unregister(id: Tid) {
    THREADS.lock().remove(&id);
}
