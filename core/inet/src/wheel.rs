//! Timers: one per socket, in a wheel whose turning costs nothing when idle.
//!
//! Four rings of 64 slots, each tick 64 times longer than that of the ring below: 1 ms,
//! 64 ms, 4 s, 262 s. Timers are *lazy*: a deadline that moves later (nearly all do: each
//! segment restarts the retransmission timer) leaves the entry where it is, and a timer that fires
//! early is armed again by its owner. For the same reason there is no cascade: an entry
//! of a coarse ring fires at the start of its slot and moves to a finer one by being
//! armed anew. A bit per slot finds the next deadline.
//!
//! Most entries fire in vain: an acknowledgement that may wait for 40 ms rides on an answer, and its entry stays. An
//! alarm for each batch of segments would be an exit to a hypervisor each. So what is due in more than
//! 16 ms fires at a whole multiple of these at first, as all that was armed about then does; and where alarms cost much,
//! the kernel and programs look at such moments anyway.
//!
//! Invariant: no slot fires before `soonest`. It is looked for again only when its time has
//! come, since a disarmed timer may leave it too early: a needless look harms nobody.

use alloc::vec::Vec;

use base::Instant;

use crate::boxed::Boxed;

const SLOTS: usize = 64;
const RINGS: usize = 4;
const TICK_NANOS: u64 = 1_000_000;
/// What is further away fires first at a whole multiple of so many ticks.
const STEP_TICKS: u64 = 16;
const NONE: u32 = u32::MAX;
/// The lists of entries whose slots have fired, one a ring, behind the slots' own lists. They
/// keep them apart from what is armed anew meanwhile. A slot's list becomes one as it is, so
/// that thousands that are due at once cost no more than one: the entries still name the slot.
const DUE: usize = SLOTS * RINGS;

#[derive(Clone, Copy)]
struct Entry {
    next: u32,
    prev: u32,
    /// Ring and slot while armed, [`NONE`] otherwise.
    place: u32,
    /// When the entry's slot fires.
    fires_at_ns: u64,
}

const IDLE: Entry = Entry {
    next: NONE,
    prev: NONE,
    place: NONE,
    fires_at_ns: u64::MAX,
};

impl Entry {
    /// Whether it fires at the first tick from `deadline` on, or before.
    #[inline]
    fn fires_by(&self, deadline: Instant) -> bool {
        self.fires_at_ns < deadline.as_nanos() + TICK_NANOS
    }
}

/// Timers named by small integers.
pub(crate) struct Wheel {
    now_tick: u64,
    heads: Boxed<[u32; DUE + RINGS]>,
    occupied: [u64; RINGS],
    /// The tick before which nothing fires; `u64::MAX` if nothing is filed.
    soonest: u64,
    entries: Vec<Entry>,
}

/// Where a deadline is filed: ring, slot, and the tick at which that slot fires.
fn place_of(now_tick: u64, deadline_tick: u64) -> (usize, usize, u64) {
    let first = now_tick + 1;
    let tick = match deadline_tick > now_tick + STEP_TICKS {
        true => deadline_tick - deadline_tick % STEP_TICKS,
        false => deadline_tick.max(first),
    };
    for ring in 0..RINGS {
        let shift = 6 * ring as u32;
        // A slot of a coarse ring fires at its first tick, which must not have passed.
        let at = (tick >> shift).max((first + (1 << shift) - 1) >> shift);
        if at - (now_tick >> shift) < SLOTS as u64 {
            return (ring, at as usize % SLOTS, at << shift);
        }
    }
    let shift = 6 * (RINGS as u32 - 1);
    let at = (now_tick >> shift) + SLOTS as u64 - 1;
    (RINGS - 1, at as usize % SLOTS, at << shift)
}

/// A call of its own: they are on the stack before they are on the heap.
#[inline(never)]
fn no_heads() -> Option<Boxed<[u32; DUE + RINGS]>> {
    Boxed::new([NONE; DUE + RINGS])
}

impl Wheel {
    /// `None` without memory for it.
    pub fn new() -> Option<Self> {
        Some(Self {
            now_tick: 0,
            heads: no_heads()?,
            occupied: [0; RINGS],
            soonest: u64::MAX,
            entries: Vec::new(),
        })
    }

    /// Makes room for a timer, so that arming it needs no memory; false if there is none.
    pub fn reserve(&mut self, timer: u32) -> bool {
        let missing = (timer as usize + 1).saturating_sub(self.entries.len());
        self.entries.try_reserve(missing).is_ok()
    }

    /// Sees to it that `timer` fires at `deadline` or before; [`Instant::NEVER`] disarms
    /// nothing, since a needless firing is harmless.
    #[inline]
    pub fn arm(&mut self, timer: u32, deadline: Instant) {
        if deadline == Instant::NEVER {
            return;
        }
        match self.entries.get(timer as usize) {
            Some(entry) if entry.fires_by(deadline) => {}
            _ => self.file(timer, deadline.as_nanos().div_ceil(TICK_NANOS)),
        }
    }

    fn file(&mut self, timer: u32, tick: u64) {
        if self.entries.len() <= timer as usize {
            self.entries.resize(timer as usize + 1, IDLE);
        }
        self.disarm(timer);
        let (ring, slot, fires_at) = place_of(self.now_tick, tick);
        self.link(timer, ring * SLOTS + slot, fires_at);
        self.occupied[ring] |= 1 << slot;
        self.soonest = self.soonest.min(fires_at);
    }

    fn link(&mut self, timer: u32, place: usize, fires_at: u64) {
        let next = self.heads[place];
        if let Some(next) = self.entries.get_mut(next as usize) {
            next.prev = timer;
        }
        self.entries[timer as usize] = Entry {
            next,
            prev: NONE,
            place: place as u32,
            fires_at_ns: fires_at.saturating_mul(TICK_NANOS),
        };
        self.heads[place] = timer;
    }

    /// Forgets a timer.
    pub fn disarm(&mut self, timer: u32) {
        let Some(entry) = self.entries.get_mut(timer as usize) else {
            return;
        };
        let Entry {
            next, prev, place, ..
        } = core::mem::replace(entry, IDLE);
        if place == NONE {
            return;
        }
        if let Some(next) = self.entries.get_mut(next as usize) {
            next.prev = prev;
        }
        let (place, ring) = (place as usize, place as usize / SLOTS);
        match self.entries.get_mut(prev as usize) {
            Some(prev) => prev.next = next,
            None if self.heads[place] == timer => self.heads[place] = next,
            None => self.heads[DUE + ring] = next,
        }
        if self.heads[place] == NONE {
            self.occupied[ring] &= !(1 << (place % SLOTS));
        }
    }

    /// The first entry whose slot has fired.
    fn first_due(&self) -> Option<u32> {
        let due = self.heads[DUE..].iter();
        due.copied().find(|timer| *timer != NONE)
    }

    /// When to look again: no slot fires before that.
    #[inline]
    pub fn next_deadline(&self) -> Option<Instant> {
        if self.first_due().is_some() {
            return Some(Instant::from_nanos(self.now_tick * TICK_NANOS));
        }
        (self.soonest != u64::MAX)
            .then(|| Instant::from_nanos(self.soonest.saturating_mul(TICK_NANOS)))
    }

    /// The tick at which the earliest slot fires.
    fn find_soonest(&self) -> u64 {
        (0..RINGS)
            .filter_map(|ring| {
                let shift = 6 * ring as u32;
                let base = (self.now_tick >> shift) + 1;
                let slots = self.occupied[ring].rotate_right((base % SLOTS as u64) as u32);
                (slots != 0).then(|| (base + u64::from(slots.trailing_zeros())) << shift)
            })
            .min()
            .unwrap_or(u64::MAX)
    }

    /// A timer whose slot has fired by `now`, disarmed; `None` when there are no more.
    pub fn pop_due(&mut self, now: Instant) -> Option<u32> {
        loop {
            if let Some(timer) = self.first_due() {
                self.disarm(timer);
                return Some(timer);
            }
            let tick = now.as_nanos() / TICK_NANOS;
            if self.soonest <= tick {
                self.soonest = self.find_soonest();
            }
            if self.soonest > tick {
                // Nothing is filed up to `now`, so the hand may jump there.
                self.now_tick = self.now_tick.max(tick);
                return None;
            }
            self.turn_to(self.soonest);
        }
    }

    /// Moves the hand, and the lists of the slots that fire at `tick`; none is left of those
    /// that fired before.
    fn turn_to(&mut self, tick: u64) {
        self.now_tick = tick;
        for ring in 0..RINGS {
            let shift = 6 * ring as u32;
            if tick & ((1 << shift) - 1) != 0 {
                return;
            }
            let slot = (tick >> shift) as usize % SLOTS;
            let place = ring * SLOTS + slot;
            self.heads[DUE + ring] = core::mem::replace(&mut self.heads[place], NONE);
            self.occupied[ring] &= !(1 << slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use base::Duration;

    use super::*;

    #[test]
    fn every_timer_fires_and_only_early_within_its_ring() {
        let mut wheel = Wheel::new().unwrap();
        let start = Instant::from_millis(123_456);
        assert_eq!(wheel.pop_due(start), None);
        let delays = [0, 1, 5, 63, 64, 65, 200, 4095, 4096, 60_000, 7_200_000];
        for (timer, millis) in delays.iter().enumerate() {
            wheel.arm(timer as u32, start + Duration::from_millis(*millis));
        }
        let mut fired = [None; 11];
        while let Some(at) = wheel.next_deadline() {
            while let Some(timer) = wheel.pop_due(at) {
                let due = start + Duration::from_millis(delays[timer as usize]);
                if at < due {
                    wheel.arm(timer, due);
                } else {
                    fired[timer as usize] = Some(at.since(due));
                }
            }
        }
        for late in fired {
            assert!(late.expect("fired") <= Duration::from_millis(1));
        }
    }

    #[test]
    fn what_is_armed_within_a_step_fires_together_at_first() {
        let mut wheel = Wheel::new().unwrap();
        let at = |millis| Instant::from_millis(1600 + millis);
        for millis in 0..STEP_TICKS {
            assert_eq!(wheel.pop_due(at(millis)), None);
            wheel.arm(millis as u32, at(millis + 40));
        }
        assert_eq!(wheel.next_deadline(), Some(at(32)));
        let mut fired = [0; STEP_TICKS as usize];
        while let Some(due) = wheel.next_deadline() {
            while let Some(timer) = wheel.pop_due(due) {
                fired[timer as usize] += 1;
                let exact = at(u64::from(timer) + 40);
                if due < exact {
                    wheel.arm(timer, exact);
                }
            }
        }
        let exact_at_once = |timer: usize| (1600 + timer as u64 + 40).is_multiple_of(STEP_TICKS);
        let expected = core::array::from_fn(|timer| if exact_at_once(timer) { 1 } else { 2 });
        assert_eq!(fired, expected);
    }

    #[test]
    fn timers_that_are_due_together_may_be_disarmed_and_armed_anew_between_them() {
        let mut wheel = Wheel::new().unwrap();
        let at = Instant::from_millis(64);
        (0..9).for_each(|timer| wheel.arm(timer, at));
        let first = wheel.pop_due(at).expect("nine are due");
        let others = |timer: &u32| *timer != first;
        let disarmed: Vec<u32> = (0..9).filter(others).step_by(2).collect();
        disarmed.iter().for_each(|timer| wheel.disarm(*timer));
        wheel.arm(first, at);
        let mut fired = Vec::new();
        while let Some(timer) = wheel.pop_due(at) {
            fired.push(timer);
        }
        assert_eq!(fired.len() + disarmed.len(), 8, "one is armed for later");
        assert!(fired.iter().all(|timer| !disarmed.contains(timer)));
        let later = at + Duration::from_millis(2);
        assert_eq!(wheel.pop_due(later), Some(first));
        assert_eq!(wheel.pop_due(later), None);
        assert_eq!(wheel.next_deadline(), None);
    }

    #[test]
    fn a_later_deadline_leaves_the_entry_and_a_disarmed_one_is_silent() {
        let mut wheel = Wheel::new().unwrap();
        wheel.arm(0, Instant::from_millis(10));
        wheel.arm(0, Instant::from_millis(50));
        wheel.arm(1, Instant::from_millis(10));
        wheel.disarm(1);
        assert_eq!(wheel.pop_due(Instant::from_millis(9)), None);
        assert_eq!(wheel.pop_due(Instant::from_millis(10)), Some(0));
        assert_eq!(wheel.pop_due(Instant::from_millis(100)), None);
        assert_eq!(wheel.next_deadline(), None);
    }
}
