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
use mbuf::Chain;
use wire::{ETHERNET_HEADER_BYTES, EthernetRepr, MacAddr};

use crate::error::Error;
use crate::output::Offload;

/// Neighbours remembered.
const ENTRIES_MAX: usize = 512;
/// Neighbours that have not answered yet.
const INCOMPLETE_MAX: usize = 128;
/// Neighbours that were set: they never make room.
const PERMANENT_MAX: usize = 256;
/// Packets that wait for one neighbour.
const WAITING_MAX: usize = 64;
/// RFC 4861 10: packets to a stale neighbour may confirm it before we ask.
const DELAY_FIRST_PROBE: Duration = Duration::from_secs(5);
/// Questions before we give up.
const QUESTIONS_MAX: u8 = 3;

/// The header of frames to one station, as it lies on the wire.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LinkHeader(pub [u8; ETHERNET_HEADER_BYTES]);

impl LinkHeader {
    pub fn new(header: &EthernetRepr) -> Self {
        let mut bytes = [0; ETHERNET_HEADER_BYTES];
        header.emit(&mut bytes);
        Self(bytes)
    }

    pub fn station(&self) -> MacAddr {
        let [a, b, c, d, e, f, ..] = self.0;
        MacAddr([a, b, c, d, e, f])
    }
}

/// A packet that waits for a station.
pub(crate) struct Waiting {
    pub packet: Chain,
    pub offload: Offload,
}

/// How long answers are trusted and questions wait; routers may change it (RFC 4861 6.3.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Timing {
    pub reachable: Duration,
    pub retransmit: Duration,
}

impl Timing {
    pub const DEFAULT: Self = Self {
        reachable: Duration::from_secs(30),
        retransmit: Duration::from_secs(1),
    };
}

/// What is known of a neighbour (RFC 4861 7.3.2), or that an administrator has said so.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NeighborState {
    /// A question is out to everybody.
    Incomplete,
    /// Confirmed lately.
    Reachable,
    /// Perhaps still there.
    Stale,
    /// Used since it was stale.
    Delay,
    /// A question is out to the station.
    Probe,
    /// It was set: nobody is asked and nobody is believed.
    Permanent,
}

use NeighborState as State;

struct Entry {
    state: State,
    /// Meaningless while incomplete.
    header: LinkHeader,
    confirmed: Instant,
    questions: u8,
    /// When the state ends by itself; never, if it does not.
    due: Instant,
    waiting: VecDeque<Waiting>,
}

/// What to do with a packet for a neighbour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Resolution {
    /// Send it with this header.
    Known(LinkHeader),
    /// Let it wait and ask.
    Ask,
    /// Let it wait; a question is out.
    Wait,
}

/// A question to repeat, or a neighbour that is gone with the packets that waited.
pub(crate) enum Overdue {
    Ask(IpAddr, Option<MacAddr>),
    Gone(VecDeque<Waiting>),
}

/// What somebody says of a neighbour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Claim {
    /// The station; an answer may leave it out.
    pub header: Option<LinkHeader>,
    /// It answers a question of ours: the neighbour hears us.
    pub is_answer: bool,
    /// It replaces another station.
    pub is_override: bool,
    /// It is remembered although we did not ask.
    pub is_welcome: bool,
}

/// What a claim leads to.
#[derive(Default)]
pub(crate) struct Learned {
    /// Packets that waited, and the header that they get.
    pub waiting: VecDeque<Waiting>,
    pub header: Option<LinkHeader>,
    /// A copy somewhere is now wrong.
    pub is_changed: bool,
    /// Packets of another neighbour that had to go.
    pub displaced: VecDeque<Waiting>,
}

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

    /// Until when a copy of a known entry may be used without asking here.
    pub fn fresh_until(&self, ip: IpAddr) -> Instant {
        match self.entries.get(&ip) {
            Some(entry) if matches!(entry.state, State::Reachable | State::Permanent) => entry.due,
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
    /// 7.2.2), or this one if nobody is asked.
    pub fn wait(&mut self, ip: IpAddr, packet: Waiting) -> Option<Waiting> {
        let Some(entry) = self.entries.get_mut(&ip) else {
            return Some(packet);
        };
        let is_full = entry.waiting.len() >= WAITING_MAX;
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
            return self.learn_stranger(ip, claim);
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
    fn learn_stranger(&mut self, ip: IpAddr, claim: Claim) -> Learned {
        let Some(header) = claim.header.filter(|_| claim.is_welcome) else {
            return Learned::default();
        };
        let displaced = self.make_room(false);
        let entry = Entry {
            state: State::Stale,
            header,
            confirmed: Instant::START,
            questions: 0,
            due: Instant::NEVER,
            waiting: VecDeque::new(),
        };
        self.insert(ip, entry);
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
        let entry = Entry {
            state: State::Permanent,
            header,
            confirmed: Instant::START,
            questions: 0,
            due: Instant::NEVER,
            waiting: VecDeque::new(),
        };
        self.insert(ip, entry);
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

impl Entry {
    /// The first question goes out with it.
    fn incomplete(due: Instant) -> Self {
        Self {
            state: State::Incomplete,
            header: LinkHeader([0; ETHERNET_HEADER_BYTES]),
            confirmed: Instant::START,
            questions: 1,
            due,
            waiting: VecDeque::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use core::net::Ipv6Addr;

    use super::*;

    const NOW: Instant = Instant::from_millis(5000);

    fn ip(host: u16) -> IpAddr {
        IpAddr::V6(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, host))
    }

    fn header(station: u8) -> LinkHeader {
        LinkHeader([station; ETHERNET_HEADER_BYTES])
    }

    fn answer(station: u8) -> Claim {
        Claim {
            header: Some(header(station)),
            is_answer: true,
            is_override: true,
            is_welcome: false,
        }
    }

    #[test]
    fn what_was_set_is_believed_whatever_others_say_until_it_is_forgotten() {
        let mut neighbors = Neighbors::default();
        neighbors.resolve(ip(1), NOW);
        neighbors.wait(ip(1), packet());
        let learned = neighbors.set(ip(1), header(7)).expect("room");
        assert_eq!(
            (learned.waiting.len(), learned.header),
            (1, Some(header(7)))
        );
        let ignored = neighbors.learn(ip(1), answer(8), NOW);
        assert!(!ignored.is_changed);
        neighbors.clear();
        for host in 2..1000 {
            neighbors.resolve(ip(host), NOW);
        }
        let known = Resolution::Known(header(7));
        assert_eq!(neighbors.resolve(ip(1), NOW).0, known);
        assert_eq!(neighbors.fresh_until(ip(1)), Instant::NEVER);
        assert!(neighbors.forget(ip(1)).is_some());
        assert_eq!(neighbors.resolve(ip(1), NOW).0, Resolution::Ask);
    }

    #[test]
    fn only_so_many_can_be_set() {
        let mut neighbors = Neighbors::default();
        let set = (0..1000).filter(|host| neighbors.set(ip(*host), header(1)).is_ok());
        assert_eq!(set.count(), PERMANENT_MAX);
        assert!(neighbors.set(ip(0), header(2)).is_ok(), "anew");
    }

    fn packet() -> Waiting {
        Waiting {
            packet: Chain::new(),
            offload: Offload::default(),
        }
    }

    fn resolve(neighbors: &mut Neighbors, host: u16, now: Instant) -> Resolution {
        neighbors.resolve(ip(host), now).0
    }

    #[test]
    fn packets_wait_for_the_answer_and_then_all_go() {
        let mut neighbors = Neighbors::default();
        assert_eq!(resolve(&mut neighbors, 1, NOW), Resolution::Ask);
        assert!(neighbors.wait(ip(1), packet()).is_none());
        assert_eq!(resolve(&mut neighbors, 1, NOW), Resolution::Wait);
        let learned = neighbors.learn(ip(1), answer(7), NOW);
        assert_eq!((learned.waiting.len(), learned.is_changed), (1, true));
        assert_eq!(
            resolve(&mut neighbors, 1, NOW),
            Resolution::Known(header(7))
        );
        assert!(neighbors.wait(ip(2), packet()).is_some(), "nobody is asked");
    }

    #[test]
    fn a_neighbour_that_is_not_used_is_not_asked_again() {
        let mut neighbors = Neighbors::default();
        resolve(&mut neighbors, 1, NOW);
        neighbors.learn(ip(1), answer(7), NOW);
        let later = NOW + Duration::from_secs(3600);
        assert!(neighbors.pop_overdue(later).is_none());
        assert_eq!(
            (neighbors.next_deadline(), neighbors.iter().count()),
            (None, 1)
        );
    }

    #[test]
    fn a_stale_neighbour_is_used_asked_and_given_up() {
        let mut neighbors = Neighbors::default();
        resolve(&mut neighbors, 1, NOW);
        neighbors.learn(ip(1), answer(7), NOW);
        let mut now = NOW + Duration::from_secs(31);
        assert_eq!(
            resolve(&mut neighbors, 1, now),
            Resolution::Known(header(7))
        );
        for _ in 0..QUESTIONS_MAX {
            now = neighbors.next_deadline().map_or(now, |due| due.max(now));
            let asked = next_event(&mut neighbors, &mut now);
            assert!(matches!(asked, Overdue::Ask(host, Some(MacAddr([7, ..]))) if host == ip(1)));
        }
        assert!(matches!(
            next_event(&mut neighbors, &mut now),
            Overdue::Gone(_)
        ));
        assert_eq!(neighbors.iter().count(), 0);
    }

    /// Goes from deadline to deadline until something is due.
    fn next_event(neighbors: &mut Neighbors, now: &mut Instant) -> Overdue {
        for _ in 0..10 {
            if let Some(overdue) = neighbors.pop_overdue(*now) {
                return overdue;
            }
            *now = neighbors.next_deadline().expect("a deadline");
        }
        panic!("nothing is ever due");
    }

    #[test]
    fn a_claim_without_override_casts_doubt_and_replaces_nothing() {
        let mut neighbors = Neighbors::default();
        resolve(&mut neighbors, 1, NOW);
        neighbors.learn(ip(1), answer(7), NOW);
        let other = Claim {
            is_override: false,
            ..answer(8)
        };
        assert!(neighbors.learn(ip(1), other, NOW).is_changed);
        assert_eq!(neighbors.fresh_until(ip(1)), Instant::START);
        assert_eq!(
            resolve(&mut neighbors, 1, NOW),
            Resolution::Known(header(7))
        );
        let learned = neighbors.learn(ip(1), answer(8), NOW);
        assert!(learned.is_changed, "its header is built anew");
        assert_eq!(
            resolve(&mut neighbors, 1, NOW),
            Resolution::Known(header(8))
        );
    }

    #[test]
    fn strangers_are_remembered_only_if_they_ask_us() {
        let mut neighbors = Neighbors::default();
        neighbors.learn(ip(1), answer(7), NOW);
        assert_eq!(neighbors.iter().count(), 0);
        let asking = Claim {
            is_welcome: true,
            is_answer: false,
            ..answer(7)
        };
        neighbors.learn(ip(1), asking, NOW);
        assert_eq!(
            resolve(&mut neighbors, 1, NOW),
            Resolution::Known(header(7))
        );
    }

    #[test]
    fn a_scan_displaces_no_neighbour_that_has_answered() {
        let mut neighbors = Neighbors::default();
        resolve(&mut neighbors, 1, NOW);
        neighbors.learn(ip(1), answer(7), NOW);
        let mut displaced = 0;
        for host in 2..2000 {
            displaced += neighbors.resolve(ip(host), NOW).1.len();
            neighbors.wait(ip(host), packet());
        }
        assert_eq!(neighbors.entries.len(), 1 + INCOMPLETE_MAX);
        assert_eq!(displaced, 1998 - INCOMPLETE_MAX, "and each drop is known");
        assert_eq!(
            resolve(&mut neighbors, 1, NOW),
            Resolution::Known(header(7))
        );
    }

    #[test]
    fn a_flood_of_claims_is_bounded_and_displaces_no_neighbour_that_has_answered() {
        let mut neighbors = Neighbors::default();
        resolve(&mut neighbors, 1, NOW);
        neighbors.learn(ip(1), answer(7), NOW);
        for host in 2..2000 {
            let claim = Claim {
                is_welcome: true,
                ..answer(8)
            };
            let now = NOW + Duration::from_millis(u64::from(host));
            neighbors.learn(ip(host), claim, now);
        }
        assert_eq!(neighbors.entries.len(), ENTRIES_MAX);
        assert_eq!(
            resolve(&mut neighbors, 1, NOW),
            Resolution::Known(header(7))
        );
    }

    #[test]
    fn the_oldest_packet_makes_room_for_the_newest() {
        let mut neighbors = Neighbors::default();
        resolve(&mut neighbors, 1, NOW);
        let kept = (0..WAITING_MAX).all(|_| neighbors.wait(ip(1), packet()).is_none());
        assert!(kept && neighbors.wait(ip(1), packet()).is_some());
        assert_eq!(neighbors.clear(), WAITING_MAX);
    }
}
