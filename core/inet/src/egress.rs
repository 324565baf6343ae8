//! By which of several interfaces a packet leaves a host.
//!
//! # Problem
//! A host with several interfaces has a stack for each (a *shard*), with addresses, routes and
//! neighbours of its own. Whoever opens a connection must know which of them before it enters one.
//!
//! # Idea
//! The strong host model (RFC 1122, section 3.3.4.2): an address belongs to its interface, and a
//! packet that names its source leaves by the interface that has it. Without a source the
//! destination decides: an address of ours is reached by its own interface, which loops the
//! packet back; everything else by the interface with the longest matching prefix, of equals by
//! the lowest metric, then by the lowest number. The stack of that interface then chooses
//! source, router and neighbour, as if it were alone.
//!
//! Each stack says what it has and reaches ([`Stack::reach`]) whenever that has changed; the table
//! is a copy, so that asking it locks no stack. It has a line for each interface, and few
//! interfaces have more than a handful of routes: a look-up is a walk. What it found is remembered
//! by destination ([`Choices`]) until the table changes.
//!
//! # Not here
//! Forwarding: a host sends only what is its own. Routes of one source network
//! (`route`): the interface is chosen as if they held for all.

use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::addr::Prefix;
use crate::stack::Stack;

/// What an interface has and reaches.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reach {
    interface: u32,
    /// Its addresses, and that of everybody on its network of IPv4.
    addresses: Vec<IpAddr>,
    /// Destinations, each with its metric.
    routes: Vec<(Prefix, u32)>,
}

impl Stack {
    /// What this stack has and reaches, as the one of `interface`.
    pub fn reach(&self, interface: u32) -> Reach {
        let v4 = self.address().into_iter();
        let v4 = v4.flat_map(|own| match own.prefix_len() {
            0..31 => [Some(own.addr()), Some(own.broadcast())],
            _ => [Some(own.addr()), None],
        });
        let v6 = self.addresses_v6().map(|own| IpAddr::V6(own.addr));
        let lines = self.routes();
        Reach {
            interface,
            addresses: v4.flatten().map(IpAddr::V4).chain(v6).collect(),
            routes: lines.map(|line| (line.destination, line.metric)).collect(),
        }
    }
}

impl Reach {
    /// How well it reaches `to`: smaller is better.
    fn rank(&self, to: IpAddr) -> Option<(u8, u32)> {
        let lines = self.routes.iter();
        let fitting = lines.filter(|(destination, _)| destination.contains(to));
        let ranks = fitting.map(|(destination, metric)| {
            // The longest first.
            (u8::MAX - destination.prefix_len(), *metric)
        });
        ranks.min()
    }
}

/// What all interfaces of a host have and reach, by number.
#[derive(Default, Debug)]
pub struct Egress {
    lines: Vec<Reach>,
}

impl Egress {
    /// An empty table.
    pub const fn new() -> Self {
        Self { lines: Vec::new() }
    }

    /// An interface has and reaches this now; says whether it has an address that it had not.
    pub fn set(&mut self, now: Reach) -> bool {
        let place = |line: &Reach| line.interface.cmp(&now.interface);
        match self.lines.binary_search_by(place) {
            Ok(at) => {
                let had = core::mem::replace(&mut self.lines[at], now).addresses;
                let has = &self.lines[at].addresses;
                has.iter().any(|addr| !had.contains(addr))
            }
            Err(at) => {
                let has_any = !now.addresses.is_empty();
                self.lines.insert(at, now);
                has_any
            }
        }
    }

    /// An interface is gone.
    pub fn remove(&mut self, interface: u32) {
        self.lines.retain(|line| line.interface != interface);
    }

    /// The interface that has `addr`, or is on the network whose broadcast address it is.
    pub fn owner(&self, addr: IpAddr) -> Option<u32> {
        let mut lines = self.lines.iter();
        let found = lines.find(|line| line.addresses.contains(&addr));
        found.map(|line| line.interface)
    }

    /// The interface by which packets from `from` to `to` leave; `None` without one. A source
    /// that is open, or a group, says nothing.
    pub fn choose(&self, from: Option<IpAddr>, to: IpAddr) -> Option<u32> {
        let names_host = |from: &IpAddr| !from.is_unspecified() && !from.is_multicast();
        match from.filter(names_host) {
            Some(from) => self.owner(from),
            None => self.owner(to).or_else(|| self.nearest(to)),
        }
    }

    /// The interface whose routes lead to `to` best.
    fn nearest(&self, to: IpAddr) -> Option<u32> {
        let lines = self.lines.iter();
        let ranked = lines.filter_map(|line| Some((line.rank(to)?, line.interface)));
        ranked.min().map(|(_, interface)| interface)
    }
}

/// How many choices are remembered.
const CHOICES: usize = 64;
const CHOICES_BITS: u32 = CHOICES.ilog2();
/// A choice is a word: the destination, the epoch of the table, what was chosen.
const EPOCH_BITS: u32 = 20;
const CHOSEN_BITS: u32 = 12;
const DESTINATION_SHIFT: u32 = EPOCH_BITS + CHOSEN_BITS;

/// What was chosen for destinations of IPv4, without a lock: a word for each, which the next
/// destination with the same place overwrites.
///
/// Whoever changes the table says so afterwards ([`changed`](Self::changed)), and whoever asks it
/// takes the epoch before.
#[derive(Debug)]
pub struct Choices {
    words: [AtomicU64; CHOICES],
    epoch: AtomicU32,
}

impl Default for Choices {
    fn default() -> Self {
        Self::new()
    }
}

impl Choices {
    /// None yet.
    pub const fn new() -> Self {
        Self {
            words: [const { AtomicU64::new(0) }; CHOICES],
            epoch: AtomicU32::new(0),
        }
    }

    /// Grows with each change.
    #[inline]
    pub fn epoch(&self) -> u32 {
        self.epoch.load(Ordering::Acquire)
    }

    /// The table is another one now.
    pub fn changed(&self) {
        let before = self.epoch.fetch_add(1, Ordering::AcqRel);
        // A word's epoch begins anew, so none may be there from the last time.
        if before.wrapping_add(1) & mask(EPOCH_BITS) as u32 == 0 {
            let words = self.words.iter();
            words.for_each(|word| word.store(0, Ordering::Release));
        }
    }

    /// What was chosen for `to` in this epoch; `None` if it is not known.
    #[inline]
    pub fn get(&self, epoch: u32, to: Ipv4Addr) -> Option<u16> {
        let word = self.word(to).load(Ordering::Relaxed);
        let is_it = word >> CHOSEN_BITS == tag(epoch, to);
        is_it.then_some((word & mask(CHOSEN_BITS)) as u16)
    }

    /// This was. What is too large for a word is not remembered.
    pub fn put(&self, epoch: u32, to: Ipv4Addr, chosen: u16) {
        if u64::from(chosen) <= mask(CHOSEN_BITS) && !to.is_unspecified() {
            let word = tag(epoch, to) << CHOSEN_BITS | u64::from(chosen);
            self.word(to).store(word, Ordering::Relaxed);
        }
    }

    #[inline]
    fn word(&self, to: Ipv4Addr) -> &AtomicU64 {
        // Knuth's multiplicative hashing: neighbours lie apart.
        let place = to.to_bits().wrapping_mul(0x9e37_79b1) >> (u32::BITS - CHOICES_BITS);
        &self.words[place as usize % CHOICES]
    }
}

/// Destination and epoch as they stand in a word; 0, which is nobody's destination, in none.
#[inline]
fn tag(epoch: u32, to: Ipv4Addr) -> u64 {
    let to = u64::from(to.to_bits()) << (DESTINATION_SHIFT - CHOSEN_BITS);
    to | u64::from(epoch) & mask(EPOCH_BITS)
}

const fn mask(bits: u32) -> u64 {
    (1 << bits) - 1
}

#[cfg(test)]
mod tests {
    use base::Instant;

    use super::*;
    use crate::addr::Cidr;
    use crate::config::Config;
    use crate::route::{Route, RouteOrigin, Via};

    const CARD: u32 = 2;
    const VNIC: u32 = 3;

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    fn stack(address: &str, gateway: Option<&str>) -> Stack {
        let mut stack = Stack::new(Config::default(), [1, 2]).unwrap();
        stack.set_address(Cidr::new(address.parse().expect("an address"), 24));
        stack.set_gateway(gateway.map(|router| router.parse().expect("an address")));
        stack
    }

    fn route(destination: &str, bits: u8, metric: u32) -> Route {
        Route {
            destination: Prefix::new(ip(destination), bits).expect("a prefix"),
            source: None,
            via: Via::OnLink,
            metric,
            origin: RouteOrigin::Static,
            expires: Instant::NEVER,
        }
    }

    fn table(stacks: &[(u32, &Stack)]) -> Egress {
        let mut table = Egress::new();
        // In whatever order they come.
        for (interface, stack) in stacks.iter().rev() {
            table.set(stack.reach(*interface));
        }
        table
    }

    /// A card with the way to everywhere, and a VNIC on a network of its own.
    fn two() -> Egress {
        let card = stack("10.0.2.15", Some("10.0.2.2"));
        table(&[(CARD, &card), (VNIC, &stack("192.168.7.1", None))])
    }

    #[test]
    fn a_destination_leaves_by_the_interface_of_its_network_else_by_the_default_route() {
        let table = two();
        assert_eq!(table.choose(None, ip("192.168.7.9")), Some(VNIC));
        assert_eq!(table.choose(None, ip("10.0.2.9")), Some(CARD));
        assert_eq!(table.choose(None, ip("8.8.8.8")), Some(CARD));
        assert_eq!(table.choose(None, ip("2001:db8::1")), None, "no route");
    }

    #[test]
    fn a_source_decides_before_the_destination_does() {
        let table = two();
        let choose = |from, to| table.choose(Some(ip(from)), ip(to));
        assert_eq!(choose("192.168.7.1", "10.0.2.9"), Some(VNIC));
        assert_eq!(choose("10.0.2.15", "192.168.7.9"), Some(CARD));
        assert_eq!(choose("0.0.0.0", "192.168.7.9"), Some(VNIC), "it is open");
        assert_eq!(choose("239.1.1.1", "192.168.7.9"), Some(VNIC), "a group");
        assert_eq!(choose("192.0.2.1", "10.0.2.9"), None, "it is nobody's");
    }

    #[test]
    fn an_address_of_ours_is_reached_by_its_own_interface() {
        let near = stack("10.0.2.16", None);
        let card = stack("10.0.2.15", Some("10.0.2.2"));
        let table = table(&[(CARD, &card), (VNIC, &near)]);
        assert_eq!(table.owner(ip("10.0.2.16")), Some(VNIC));
        assert_eq!(table.choose(None, ip("10.0.2.16")), Some(VNIC));
        assert_eq!(table.owner(ip("10.0.2.17")), None);
    }

    #[test]
    fn of_two_in_one_network_the_lower_metric_wins_then_the_lower_number() {
        let card = stack("10.0.2.15", Some("10.0.2.2"));
        let mut near = stack("10.0.2.16", Some("10.0.2.2"));
        let equal = table(&[(CARD, &card), (VNIC, &near)]);
        assert_eq!(equal.choose(None, ip("10.0.2.9")), Some(CARD));
        assert_eq!(equal.choose(None, ip("8.8.8.8")), Some(CARD));
        assert_eq!(near.add_route(route("172.16.0.0", 12, 5)), Ok(()));
        let mut card = card;
        assert_eq!(card.add_route(route("172.16.0.0", 12, 9)), Ok(()));
        let metrics = table(&[(CARD, &card), (VNIC, &near)]);
        assert_eq!(metrics.choose(None, ip("172.16.1.1")), Some(VNIC));
    }

    #[test]
    fn everybody_on_a_network_is_reached_by_its_interface() {
        let table = two();
        assert_eq!(table.owner(ip("192.168.7.255")), Some(VNIC));
        assert_eq!(table.choose(None, ip("192.168.7.255")), Some(VNIC));
        assert_eq!(table.choose(None, ip("255.255.255.255")), Some(CARD));
    }

    #[test]
    fn who_changes_an_interface_hears_whether_it_has_a_new_address() {
        let mut table = two();
        assert!(!table.set(stack("192.168.7.1", Some("192.168.7.9")).reach(VNIC)));
        assert!(table.set(stack("192.168.8.1", None).reach(VNIC)));
        assert!(table.set(stack("192.168.7.1", None).reach(VNIC + 1)));
    }

    #[test]
    fn a_choice_is_remembered_until_the_table_changes() {
        let choices = Choices::new();
        let to = |host: u32| Ipv4Addr::from_bits(10 << 24 | host);
        assert_eq!(choices.get(choices.epoch(), to(1)), None);
        choices.put(choices.epoch(), to(1), 0);
        choices.put(choices.epoch(), to(2), 300);
        assert_eq!(choices.get(choices.epoch(), to(1)), Some(0));
        assert_eq!(choices.get(choices.epoch(), to(2)), Some(300));
        let asked = choices.epoch();
        choices.changed();
        choices.put(asked, to(1), 7);
        assert_eq!(choices.get(choices.epoch(), to(1)), None, "asked before");
        choices.put(choices.epoch(), to(1), u16::MAX);
        assert_eq!(choices.get(choices.epoch(), to(1)), None, "too large");
    }

    #[test]
    fn an_epoch_that_begins_anew_finds_no_choice_of_the_last_time() {
        let choices = Choices::new();
        let to = Ipv4Addr::new(10, 0, 2, 2);
        choices.put(choices.epoch(), to, 5);
        (0..1 << EPOCH_BITS).for_each(|_| choices.changed());
        assert_eq!(choices.get(choices.epoch(), to), None);
    }

    #[test]
    fn what_is_remembered_is_what_was_chosen_however_many_there_are() {
        let choices = Choices::new();
        let choose = |host: u32| (host % 7) as u16;
        let mut known = 0;
        for host in (1..5000_u32).chain(4990..5000) {
            let to = Ipv4Addr::from_bits(10 << 24 | host);
            match choices.get(choices.epoch(), to) {
                Some(chosen) => {
                    assert_eq!(chosen, choose(host));
                    known += 1;
                }
                None => choices.put(choices.epoch(), to, choose(host)),
            }
        }
        assert_eq!(known, 10, "neighbours do not drive each other out");
    }

    #[test]
    fn what_an_interface_had_goes_with_it() {
        let mut table = two();
        table.set(stack("192.168.8.1", None).reach(VNIC));
        assert_eq!(table.owner(ip("192.168.7.1")), None, "it was renumbered");
        assert_eq!(table.owner(ip("192.168.8.1")), Some(VNIC));
        table.remove(VNIC);
        assert_eq!(table.owner(ip("192.168.8.1")), None);
        assert_eq!(table.choose(None, ip("192.168.8.9")), Some(CARD));
    }
}
