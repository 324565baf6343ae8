//! The runnable threads of one CPU: the best rank first, then least virtual run time.
//!
//! Threads of a real-time rank stand in the order in which they came, and one that had to make
//! way for a better one stands in front.
//!
//! Virtual run times of different CPUs have nothing to do with each other, and that of a sleeper
//! stands still. So a thread that comes is brought near to the queue's *floor*: the virtual run
//! time of the last thread that was picked here, which never sinks.

use alloc::sync::Arc;

use base::CpuId;
use base::lock::Count;

use crate::entity::Place;
use crate::policy::Rank;
use crate::ready::{Key, Ready};
use crate::waiting::Waiting;
use crate::{SchedEntity, Thread};

/// A sleeper comes back with at most this much credit over the threads that ran.
const WAKE_CREDIT_NS: u64 = 3_000_000;
/// A thread from another CPU comes with at most this much debt, whose virtual run time may be
/// far ahead. A slice of the least weight costs less, so threads that stay keep theirs.
const DEBT_MAX_NS: u64 = 300_000_000;

/// Ready threads by their keys.
pub struct RunQueue<T> {
    ready: Ready<T>,
    arrivals: i64,
    floor_ns: u64,
    /// Threads of real-time ranks.
    realtime: usize,
    /// Threads that may run elsewhere too.
    movable: usize,
}

impl<T> RunQueue<T> {
    /// Without threads.
    pub const fn new() -> Self {
        Self {
            ready: Ready::new(),
            arrivals: 0,
            floor_ns: 0,
            realtime: 0,
            movable: 0,
        }
    }

    /// How many wait here.
    pub(crate) fn waiting(&self) -> Waiting {
        Waiting {
            ready: self.ready.len(),
            movable: self.movable,
        }
    }

    /// Those of real-time ranks among them.
    pub(crate) fn realtime(&self) -> usize {
        self.realtime
    }

    /// Where the thread stands that is to run next, by the rules of [`pop`](Self::pop).
    pub(crate) fn first(&self, after_fair: bool) -> Option<Key> {
        let first = self.ready.first_key()?;
        if !after_fair || !first.rank.is_realtime() {
            return Some(first);
        }
        Some(self.ready.first_from(Key::FIRST_FAIR).unwrap_or(first))
    }

    fn bring_up(&self, thread: &SchedEntity<impl Count>) {
        let earliest = self.floor_ns.saturating_sub(WAKE_CREDIT_NS);
        let latest = self.floor_ns.saturating_add(DEBT_MAX_NS);
        thread.set_vruntime_ns(thread.vruntime_ns().clamp(earliest, latest));
    }

    /// Publishes where a thread that comes is to stand, by the rank that it has afterwards.
    fn publish_place(&mut self, thread: &SchedEntity<impl Count>, cpu: CpuId) -> Place {
        self.arrivals += 1;
        let mut goes_first = false;
        loop {
            let rank = thread.rank();
            goes_first |= thread.class.take_place();
            let order = match rank.is_realtime() && goes_first {
                true => -self.arrivals,
                false => self.arrivals,
            };
            let place = Place { cpu, rank, order };
            thread.publish_place(place);
            // Who changes it from now on sees the place, and waits for this queue.
            if thread.rank() == rank {
                return place;
            }
        }
    }
}

impl<T> Default for RunQueue<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Thread> RunQueue<T> {
    /// Adds a thread, its virtual run time brought up to this queue's, on CPU `cpu`.
    pub fn push(&mut self, thread: Arc<T>, cpu: CpuId) {
        let entity = thread.sched();
        let place = self.publish_place(entity, cpu);
        match place.rank.is_realtime() {
            true => self.realtime += 1,
            false => self.bring_up(entity),
        }
        let key = entity.key(place);
        self.movable += usize::from(entity.note_mobility(cpu));
        self.ready.insert(key, thread);
    }

    fn take(&mut self, key: Key) -> Option<Arc<T>> {
        let thread = self.ready.remove(&key)?;
        self.realtime -= usize::from(key.rank.is_realtime());
        self.movable -= usize::from(thread.sched().is_movable());
        thread.sched().clear_place();
        Some(thread)
    }

    /// Takes the thread that is to run next; `after_fair`: a real-time one only if there is no
    /// other.
    pub fn pop(&mut self, after_fair: bool) -> Option<Arc<T>> {
        let key = self.first(after_fair)?;
        // That of real-time threads is 0.
        self.floor_ns = self.floor_ns.max(key.vruntime_ns);
        self.take(key)
    }

    /// Takes out a thread that waits here at this place.
    pub fn remove(&mut self, thread: &SchedEntity<T::Count>) -> Option<Arc<T>> {
        let key = thread.key(thread.place()?);
        self.has(key, thread).then(|| self.take(key)).flatten()
    }

    /// Other CPUs than before may be allowed to a thread, if it waits here at this place.
    pub(crate) fn note_affinity(&mut self, thread: &SchedEntity<T::Count>) {
        let here = |place: &Place| self.has(thread.key(*place), thread);
        if let Some(place) = thread.place().filter(here) {
            self.movable -= usize::from(thread.is_movable());
            self.movable += usize::from(thread.note_mobility(place.cpu));
        }
    }

    fn has(&self, key: Key, thread: &SchedEntity<T::Count>) -> bool {
        let waiting = self.ready.get(&key);
        waiting.is_some_and(|one| core::ptr::eq(one.sched(), thread))
    }

    /// Takes a thread that may run on `thief`, the one that would wait longest.
    pub(crate) fn steal(&mut self, thief: CpuId) -> Option<Arc<T>> {
        let may_come = |(_, thread): &(&Key, &Arc<T>)| thread.sched().allows(thief);
        let key = *self.ready.iter().rev().find(may_come)?.0;
        self.take(key)
    }

    /// The best rank of those that may run on `thief`, if it is better than `than`.
    pub(crate) fn best_for(&self, thief: CpuId, than: Rank) -> Option<Key> {
        if self.realtime == 0 {
            return None;
        }
        let mut waiting = self.ready.iter().take_while(|(key, _)| key.rank < than);
        waiting
            .find(|(_, thread)| thread.sched().allows(thief))
            .map(|(key, _)| *key)
    }

    /// Takes that one.
    pub(crate) fn steal_better(&mut self, thief: CpuId, than: Rank) -> Option<Arc<T>> {
        let key = self.best_for(thief, than)?;
        self.take(key)
    }
}
