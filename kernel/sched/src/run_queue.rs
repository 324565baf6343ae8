//! The runnable threads of one CPU: the best rank first, then least virtual run time.
//!
//! Threads of a real-time rank stand in the order in which they came, and one that had to make
//! way for a better one stands in front.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;

use base::CpuId;

use crate::class::Rank;
use crate::{Entity, placement};

/// A sleeper comes back with at most this much credit over the threads that ran.
const WAKE_CREDIT_NS: u64 = 3_000_000;
/// A thread from another CPU comes with at most this much debt, whose virtual run time may be
/// far ahead. A slice of the least weight costs less, so threads that stay keep theirs.
const DEBT_MAX_NS: u64 = 300_000_000;

/// Where a thread stands.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Place {
    pub rank: Rank,
    /// Virtual run time; 0 for real-time ranks.
    pub vruntime_ns: u64,
    order: i64,
}

impl Place {
    const FIRST_FAIR: Self = Self {
        rank: Rank::FAIR,
        vruntime_ns: 0,
        order: i64::MIN,
    };
}

/// Ready threads by their places.
pub(crate) struct RunQueue {
    ready: BTreeMap<Place, Arc<Entity>>,
    arrivals: i64,
    floor_ns: u64,
    /// Threads of real-time ranks.
    realtime: usize,
}

impl RunQueue {
    pub(crate) const fn new() -> Self {
        Self {
            ready: BTreeMap::new(),
            arrivals: 0,
            floor_ns: 0,
            realtime: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.ready.len()
    }

    /// Adds a thread, its virtual run time brought up to this queue's, on CPU `cpu`.
    pub(crate) fn push(&mut self, thread: Arc<Entity>, cpu: CpuId) {
        let rank = thread.class.rank();
        let goes_first = thread.class.take_place();
        self.arrivals += 1;
        let place = match rank.is_realtime() {
            true => Place {
                rank,
                vruntime_ns: 0,
                order: if goes_first {
                    -self.arrivals
                } else {
                    self.arrivals
                },
            },
            false => Place {
                rank,
                vruntime_ns: self.bring_up(&thread),
                order: self.arrivals,
            },
        };
        self.count(rank, true);
        thread.set_place(Some((cpu, place.rank, place.order)));
        self.ready.insert(place, thread);
    }

    fn bring_up(&self, thread: &Entity) -> u64 {
        let earliest = self.floor_ns.saturating_sub(WAKE_CREDIT_NS);
        let latest = self.floor_ns + DEBT_MAX_NS;
        let vruntime_ns = thread.vruntime_ns().clamp(earliest, latest);
        thread.set_vruntime_ns(vruntime_ns);
        vruntime_ns
    }

    fn count(&mut self, rank: Rank, comes: bool) {
        if rank.is_realtime() {
            self.realtime = self
                .realtime
                .wrapping_add_signed(if comes { 1 } else { -1 });
            placement::count_realtime(comes);
        }
    }

    fn take(&mut self, place: Place) -> Option<Arc<Entity>> {
        let thread = self.ready.remove(&place)?;
        self.count(place.rank, false);
        thread.set_place(None);
        Some(thread)
    }

    /// Takes the thread that is to run next; `after_fair`: a real-time one only if there is no
    /// other.
    pub(crate) fn pop(&mut self, after_fair: bool) -> Option<Arc<Entity>> {
        let place = self.first(after_fair)?;
        if !place.rank.is_realtime() {
            self.floor_ns = self.floor_ns.max(place.vruntime_ns);
        }
        self.take(place)
    }

    /// Takes out a thread that waits here at this place.
    pub(crate) fn remove(&mut self, thread: &Entity) -> Option<Arc<Entity>> {
        let (_, rank, order) = thread.place()?;
        let place = Place {
            rank,
            vruntime_ns: match rank.is_realtime() {
                true => 0,
                false => thread.vruntime_ns(),
            },
            order,
        };
        let is_there = self
            .ready
            .get(&place)
            .is_some_and(|one| core::ptr::eq(&**one, thread));
        is_there.then(|| self.take(place)).flatten()
    }

    /// Takes a thread that may run on `thief`, the one that would wait longest.
    pub(crate) fn steal(&mut self, thief: CpuId) -> Option<Arc<Entity>> {
        let mut waiting = self.ready.iter().rev();
        let (place, _) = waiting.find(|(_, thread)| thread.allows(thief))?;
        self.take(*place)
    }

    /// Takes the best thread that may run on `thief` and has a better rank than `than`.
    pub(crate) fn steal_better(&mut self, thief: CpuId, than: Rank) -> Option<Arc<Entity>> {
        if self.realtime == 0 {
            return None;
        }
        let mut waiting = self.ready.iter().take_while(|(place, _)| place.rank < than);
        let (place, _) = waiting.find(|(_, thread)| thread.allows(thief))?;
        self.take(*place)
    }

    /// Where the thread stands that is to run next, by the rules of [`pop`](Self::pop).
    pub(crate) fn first(&self, after_fair: bool) -> Option<Place> {
        let first = *self.ready.first_key_value()?.0;
        if !after_fair || !first.rank.is_realtime() {
            return Some(first);
        }
        let fair = self.ready.range(Place::FIRST_FAIR..).next();
        Some(fair.map_or(first, |(place, _)| *place))
    }
}
