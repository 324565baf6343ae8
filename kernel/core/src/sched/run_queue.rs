//! The runnable threads of one CPU, least virtual run time first.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;

use base::CpuId;

use crate::task::Thread;

/// A sleeper comes back with at most this much credit over the threads that ran.
const WAKE_CREDIT_NS: u64 = 3_000_000;
/// A thread from another CPU comes with at most this much debt, whose virtual run time may be
/// far ahead. A slice of the least weight costs less, so threads that stay keep theirs.
const DEBT_MAX_NS: u64 = 300_000_000;

/// Ready threads by (virtual run time, order of arrival).
pub(super) struct RunQueue {
    ready: BTreeMap<(u64, u64), Arc<Thread>>,
    arrivals: u64,
    floor_ns: u64,
}

impl RunQueue {
    pub(super) const fn new() -> Self {
        Self {
            ready: BTreeMap::new(),
            arrivals: 0,
            floor_ns: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.ready.len()
    }

    /// Adds a thread, its virtual run time brought up to this queue's.
    pub(super) fn push(&mut self, thread: Arc<Thread>) {
        let earliest = self.floor_ns.saturating_sub(WAKE_CREDIT_NS);
        let latest = self.floor_ns + DEBT_MAX_NS;
        let vruntime_ns = thread.sched.vruntime_ns().clamp(earliest, latest);
        thread.sched.set_vruntime_ns(vruntime_ns);
        self.arrivals += 1;
        self.ready.insert((vruntime_ns, self.arrivals), thread);
    }

    /// Takes the thread that has had least.
    pub(super) fn pop(&mut self) -> Option<Arc<Thread>> {
        let ((vruntime_ns, _), thread) = self.ready.pop_first()?;
        self.floor_ns = self.floor_ns.max(vruntime_ns);
        Some(thread)
    }

    /// Takes a thread that may run on `thief`, the one that would wait longest.
    pub(super) fn steal(&mut self, thief: CpuId) -> Option<Arc<Thread>> {
        let key = self
            .ready
            .iter()
            .rev()
            .find(|(_, thread)| thread.sched.allows(thief))
            .map(|(key, _)| *key)?;
        self.ready.remove(&key)
    }

    /// The least virtual run time among the ready.
    pub(super) fn first_vruntime_ns(&self) -> Option<u64> {
        self.ready
            .first_key_value()
            .map(|((vruntime_ns, _), _)| *vruntime_ns)
    }
}
