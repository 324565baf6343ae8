//! The neighbour cache: which station has an address. One for ARP (RFC 826, RFC 1122
//! 2.3.2), one for neighbour discovery (RFC 4861 7.3); both run the same states.
//!
//! ```text
//!            question                 answer
//!  (none) ───────────▶ incomplete ───────────────▶ reachable ◀──────────┐
//!                          │ no answer                 │ 30 s            │ answer
//!                          ▼                           ▼      5 s        │
//!                       (none)        a claim ───▶  stale ─use─▶ delay ─▶ probe
//!                          ▲                                              │ no answer
//!                          └──────────────────────────────────────────────┘
//! ```
//!
//! An entry holds the Ethernet header that frames to it begin with, built once and again
//! when the station changes. Connections copy the header and compare an epoch, so entries
//! are only looked up when something has changed or is no longer fresh.
//!
//! Who fills the cache: our own packets, and neighbours that ask for us. Both may be
//! provoked (RFC 6583), so entries, entries without an answer and waiting packets are
//! bounded, and those without an answer go first. A tree is used because addresses are an
//! attacker's choice and order must not depend on chance.
//! Not here: what messages say that (`arp`, `ipv6/discovery`), and sending.

use alloc::collections::{BTreeMap, VecDeque};
use core::net::IpAddr;

use base::{Duration, Instant};
use wire::MacAddr;

mod entry;

pub use entry::NeighborState;
pub(crate) use entry::{Claim, Learned, LinkHeader, Overdue, Resolution, Timing, Waiting};
use entry::{Entry, NeighborState as State};

use crate::error::Error;

/// Neighbours remembered.
const ENTRIES_MAX: usize = 512;
/// Neighbours that have not answered yet.
const INCOMPLETE_MAX: usize = 128;
/// Neighbours that were set: they never make room.
const PERMANENT_MAX: usize = 256;
/// Packets that wait for one neighbour.
const WAITING_MAX: usize = 64;
/// The same for all of them together: a program chooses how many neighbours it asks for.
const WAITING_IN_ALL_MAX: usize = 256;
/// RFC 4861 10: packets to a stale neighbour may confirm it before we ask.
const DELAY_FIRST_PROBE: Duration = Duration::from_secs(5);
/// Questions before we give up.
const QUESTIONS_MAX: u8 = 3;

/// All neighbours of one family.
pub(crate) struct Neighbors {
    entries: BTreeMap<IpAddr, Entry>,
    timing: Timing,
    /// No entry is due before.
    due: Instant,
}

impl Default for Neighbors {
    fn default() -> Self {
        Self {
            entries: BTreeMap::new(),
            timing: Timing::DEFAULT,
            due: Instant::NEVER,
        }
    }
}

impl Neighbors {
    pub fn set_timing(&mut self, timing: Timing) {
        self.timing = timing;
    }

    pub fn timing(&self) -> Timing {
        self.timing
    }

    /// Until when a copy of a known entry may be used without asking here. A stale one is asked once,
    /// so that it is probed after a delay; until then nothing depends on who uses it.
    pub fn fresh_until(&self, ip: IpAddr) -> Instant {
        match self.entries.get(&ip).map(|entry| (entry.state, entry.due)) {
            Some((State::Reachable | State::Delay | State::Permanent, due)) => due,
            _ => Instant::START,
        }
    }

    /// How much there is to say for a router: it answers, it may, it does not.
    pub fn rank(&self, ip: IpAddr) -> u8 {
        match self.entries.get(&ip).map(|entry| entry.state) {
            Some(State::Reachable | State::Stale | State::Delay | State::Permanent) => 3,
            Some(State::Probe) => 2,
            // It was not tried, and is worth a try.
            None => 1,
            Some(State::Incomplete) => 0,
        }
    }

    /// What to do with a packet for `ip`. The packets returned had to go for a new entry.
    pub fn resolve(&mut self, ip: IpAddr, now: Instant) -> (Resolution, VecDeque<Waiting>) {
        let Some(entry) = self.entries.get_mut(&ip) else {
            let displaced = self.make_room(true);
            let due = now + self.timing.retransmit;
            self.insert(ip, Entry::incomplete(due));
            return (Resolution::Ask, displaced);
        };
        let resolution = match entry.state {
            State::Incomplete => Resolution::Wait,
            State::Reachable if entry.due > now => Resolution::Known(entry.header),
            State::Reachable | State::Stale => {
                (entry.state, entry.due) = (State::Delay, now + DELAY_FIRST_PROBE);
                self.due = self.due.min(entry.due);
                Resolution::Known(entry.header)
            }
            State::Delay | State::Probe | State::Permanent => Resolution::Known(entry.header),
        };
        (resolution, VecDeque::new())
    }

    fn insert(&mut self, ip: IpAddr, entry: Entry) {
        self.due = self.due.min(entry.due);
        self.entries.insert(ip, entry);
    }

    /// Forgets an entry if there are too many: one without an answer before others, else
    /// the one that was confirmed longest ago.
    fn make_room(&mut self, for_incomplete: bool) -> VecDeque<Waiting> {
        let is_incomplete = |entry: &Entry| entry.state == State::Incomplete;
        let incomplete = self.entries.values().filter(|entry| is_incomplete(entry));
        let incomplete = incomplete.count();
        let is_asking_too_much = for_incomplete && incomplete >= INCOMPLETE_MAX;
        if self.entries.len() < ENTRIES_MAX && !is_asking_too_much {
            return VecDeque::new();
        }
        let victim = self
            .entries
            .iter()
            .filter(|(_, entry)| entry.state != State::Permanent)
            .filter(|(_, entry)| incomplete == 0 || is_incomplete(entry))
            .min_by_key(|(_, entry)| (entry.confirmed, entry.due))
            .map(|(ip, _)| *ip);
        let gone = victim.and_then(|ip| self.entries.remove(&ip));
        gone.map_or_else(VecDeque::new, |entry| entry.waiting)
    }

    /// Lets a packet wait; gives one back if there are too many: the oldest (RFC 4861
    /// 7.2.2), or this one if nobody is asked, too many wait for others, or there is no memory.
    pub fn wait(&mut self, ip: IpAddr, packet: Waiting) -> Option<Waiting> {
        let waiting = self.entries.values().map(|entry| entry.waiting.len());
        let is_crowded = waiting.sum::<usize>() >= WAITING_IN_ALL_MAX;
        let Some(entry) = self.entries.get_mut(&ip) else {
            return Some(packet);
        };
        if is_crowded && entry.waiting.is_empty() || entry.waiting.try_reserve(1).is_err() {
            return Some(packet);
        }
        let is_full = is_crowded || entry.waiting.len() >= WAITING_MAX;
        let oldest = if is_full {
            entry.waiting.pop_front()
        } else {
            None
        };
        entry.waiting.push_back(packet);
        oldest
    }

    /// Takes in what somebody says of `ip` (RFC 4861 7.2.3 and 7.2.5).
    pub fn learn(&mut self, ip: IpAddr, claim: Claim, now: Instant) -> Learned {
        let reachable_until = now + self.timing.reachable;
        let Some(entry) = self.entries.get_mut(&ip) else {
            return self.learn_unsolicited(ip, claim);
        };
        if entry.state == State::Permanent {
            return Learned::default();
        }
        let is_incomplete = entry.state == State::Incomplete;
        let header = match claim.header {
            Some(header) => header,
            None if is_incomplete => return Learned::default(),
            None => entry.header,
        };
        let is_other = !is_incomplete && header != entry.header;
        if is_other && !claim.is_override {
            // Somebody else claims it: what we know is in doubt, but not replaced.
            let was_reachable = entry.state == State::Reachable;
            if was_reachable {
                (entry.state, entry.due) = (State::Stale, Instant::NEVER);
            }
            return Learned {
                is_changed: was_reachable,
                ..Learned::default()
            };
        }
        entry.header = header;
        if claim.is_answer {
            (entry.state, entry.due) = (State::Reachable, reachable_until);
            (entry.confirmed, entry.questions) = (now, 0);
        } else if is_incomplete || is_other {
            (entry.state, entry.due) = (State::Stale, Instant::NEVER);
            entry.questions = 0;
        }
        Learned {
            waiting: core::mem::take(&mut entry.waiting),
            header: Some(header),
            is_changed: is_incomplete || is_other,
            displaced: VecDeque::new(),
        }
    }

    /// Remembers one that we have not asked for, as stale. Nothing has confirmed it, so it
    /// makes room before any neighbour that has answered, however many there are of its kind.
    fn learn_unsolicited(&mut self, ip: IpAddr, claim: Claim) -> Learned {
        let Some(header) = claim.header.filter(|_| claim.is_welcome) else {
            return Learned::default();
        };
        let displaced = self.make_room(false);
        self.insert(ip, Entry::known(State::Stale, header));
        Learned {
            displaced,
            ..Learned::default()
        }
    }

    /// When [`pop_overdue`](Self::pop_overdue) may have something, or nothing yet.
    pub fn next_deadline(&self) -> Option<Instant> {
        (self.due < Instant::NEVER).then_some(self.due)
    }

    /// One question that is due, or neighbour that is gone.
    pub fn pop_overdue(&mut self, now: Instant) -> Option<Overdue> {
        if self.due > now {
            return None;
        }
        self.age(now);
        let due = self.entries.iter().find(|(_, entry)| entry.due <= now);
        let Some(ip) = due.map(|(ip, _)| *ip) else {
            let all = self.entries.values().map(|entry| entry.due);
            self.due = all.min().unwrap_or(Instant::NEVER);
            return None;
        };
        let entry = self.entries.get_mut(&ip)?;
        if entry.questions >= QUESTIONS_MAX {
            let gone = self.entries.remove(&ip)?;
            return Some(Overdue::Gone(gone.waiting));
        }
        entry.questions += 1;
        entry.due = now + self.timing.retransmit;
        let mut station = None;
        if entry.state != State::Incomplete {
            entry.state = State::Probe;
            station = Some(entry.header.station());
        }
        Some(Overdue::Ask(ip, station))
    }

    /// What was confirmed too long ago is in doubt from now on.
    fn age(&mut self, now: Instant) {
        for entry in self.entries.values_mut() {
            if entry.state == State::Reachable && entry.due <= now {
                (entry.state, entry.due) = (State::Stale, Instant::NEVER);
            }
        }
    }

    /// Remembers what an administrator says of `ip`, for as long as nobody says otherwise.
    ///
    /// Errors: `NoBuffers` if too many were set.
    pub fn set(&mut self, ip: IpAddr, header: LinkHeader) -> Result<Learned, Error> {
        let set = |entry: &&Entry| entry.state == State::Permanent;
        let is_new = self.entries.get(&ip).is_none_or(|old| !set(&old));
        if is_new && self.entries.values().filter(set).count() >= PERMANENT_MAX {
            return Err(Error::NoBuffers);
        }
        let old = self.entries.remove(&ip);
        let displaced = self.make_room(false);
        self.insert(ip, Entry::known(State::Permanent, header));
        Ok(Learned {
            waiting: old.map(|old| old.waiting).unwrap_or_default(),
            header: Some(header),
            is_changed: true,
            displaced,
        })
    }

    /// Forgets one; returns the packets that waited for it.
    pub fn forget(&mut self, ip: IpAddr) -> Option<VecDeque<Waiting>> {
        Some(self.entries.remove(&ip)?.waiting)
    }

    /// All of them with their stations, for tools.
    pub fn all(&self) -> impl Iterator<Item = (IpAddr, NeighborState, Option<MacAddr>)> + '_ {
        self.entries.iter().map(|(ip, entry)| {
            let is_known = entry.state != State::Incomplete;
            (*ip, entry.state, is_known.then(|| entry.header.station()))
        })
    }

    /// Addresses with their stations, for tools.
    pub fn iter(&self) -> impl Iterator<Item = (IpAddr, MacAddr)> + '_ {
        let known = self.entries.iter();
        known
            .filter(|(_, entry)| entry.state != State::Incomplete)
            .map(|(ip, entry)| (*ip, entry.header.station()))
    }

    /// Forgets everything but what was set; returns the packets that waited.
    pub fn clear(&mut self) -> usize {
        let waiting = self.entries.values().map(|entry| entry.waiting.len());
        let waiting = waiting.sum();
        self.entries
            .retain(|_, entry| entry.state == State::Permanent);
        self.due = Instant::NEVER;
        waiting
    }
}

#[cfg(test)]
mod tests;
