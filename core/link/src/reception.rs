//! What a card takes beside the frames for its stations: groups, or everything.
//!
//! # Problem
//! Several want frames of one card: each stack the groups that its sockets and addresses joined,
//! programs all groups or all frames (`IFF_ALLMULTI`, `IFF_PROMISC`, packet sockets), the link layer
//! all frames while the card's filters do not suffice. The card has one state, which must hold
//! what any of them wants, and must shrink again when the last one is gone.
//!
//! # Idea
//! Wishes are counted, not flagged. The card is told by [`Reception::tell`] after changes, and hears
//! only of what is other than before; what failed is told again with the next change.
//!
//! # Invariants
//! - A card takes a group while it has a member, and those that everybody listens to always.
//! - Two groups of IP may share a station: it is taken until both are left.
//! - A group for whose member there is no memory is taken by taking all groups.
//!
//! # Not here
//! Unicast addresses ([`crate::group`]), who of a port's clients sees a frame ([`crate::promisc`]).

use alloc::vec::Vec;

use hal::{MulticastFilter, NicControl, NicError, PromiscuousScope};
use wire::MacAddr;

/// Groups whose frames everybody takes: all hosts of IPv4, all nodes of IPv6.
const UNIVERSAL: [[u8; 6]; 2] = [[0x01, 0, 0x5e, 0, 0, 1], [0x33, 0x33, 0, 0, 0, 1]];

/// What is wanted of one card, and what it was told.
#[derive(Debug)]
pub struct Reception {
    /// Groups with their members, by address.
    groups: Vec<(MacAddr, u32)>,
    /// Members of groups for which there was no memory.
    unlisted: u32,
    wants_all_groups: u32,
    wants_all: u32,
    /// The link layer wants all frames.
    links_want_all: bool,
    /// The card was told to take all frames.
    takes_all: bool,
    /// The card was told of the groups as they are.
    knows_groups: bool,
}

impl Default for Reception {
    fn default() -> Self {
        Self::new()
    }
}

impl Reception {
    /// Nobody wants anything, and the card was told nothing.
    pub const fn new() -> Self {
        Self {
            groups: Vec::new(),
            unlisted: 0,
            wants_all_groups: 0,
            wants_all: 0,
            links_want_all: false,
            takes_all: false,
            knows_groups: false,
        }
    }

    /// One member more of a group.
    pub fn join(&mut self, group: MacAddr) {
        match self.find(group) {
            Ok(at) => self.groups[at].1 = self.groups[at].1.saturating_add(1),
            Err(_) if self.groups.try_reserve(1).is_err() => {
                self.knows_groups &= self.unlisted != 0;
                self.unlisted = self.unlisted.saturating_add(1);
            }
            Err(at) => {
                self.groups.insert(at, (group, 1));
                self.knows_groups = false;
            }
        }
    }

    /// One member less.
    pub fn leave(&mut self, group: MacAddr) {
        match self.find(group) {
            Ok(at) if self.groups[at].1 > 1 => self.groups[at].1 -= 1,
            Ok(at) => {
                self.groups.remove(at);
                self.knows_groups = false;
            }
            Err(_) => {
                self.unlisted = self.unlisted.saturating_sub(1);
                self.knows_groups &= self.unlisted != 0;
            }
        }
    }

    fn find(&self, group: MacAddr) -> Result<usize, usize> {
        self.groups
            .binary_search_by_key(&group.0, |(known, _)| known.0)
    }

    /// One more wants all groups, or one less.
    pub fn want_all_groups(&mut self, is_more: bool) {
        let before = self.wants_all_groups;
        self.wants_all_groups = counted(before, is_more);
        self.knows_groups &= (before == 0) == (self.wants_all_groups == 0);
    }

    /// One more wants all frames, or one less.
    pub fn want_all(&mut self, is_more: bool) {
        self.wants_all = counted(self.wants_all, is_more);
    }

    /// The link layer wants all frames, or no longer; says what it wanted before.
    pub fn want_all_for_links(&mut self, on: bool) -> bool {
        core::mem::replace(&mut self.links_want_all, on)
    }

    /// Tells a card what is other than it was told before.
    ///
    /// Errors: the card's, if it does not take all frames or does not end to; one that cannot
    /// filter groups takes them all.
    pub fn tell(&mut self, card: &mut dyn NicControl) -> Result<(), NicError> {
        if !self.knows_groups {
            let told = self.tell_groups(card);
            self.knows_groups = matches!(told, Ok(()) | Err(NicError::Unsupported));
        }
        let all = self.wants_all != 0 || self.links_want_all;
        if all != self.takes_all {
            card.set_promiscuous(PromiscuousScope::Card, all)?;
            self.takes_all = all;
        }
        Ok(())
    }

    fn tell_groups(&self, card: &mut dyn NicControl) -> Result<(), NicError> {
        let mut wanted = Vec::new();
        let len = self.groups.len() + UNIVERSAL.len();
        let has_memory = wanted.try_reserve_exact(len).is_ok();
        if !has_memory || self.wants_all_groups != 0 || self.unlisted != 0 {
            return card.set_multicast(MulticastFilter::All);
        }
        wanted.extend(UNIVERSAL);
        wanted.extend(self.groups.iter().map(|(group, _)| group.0));
        card.set_multicast(MulticastFilter::Only(&wanted))
    }
}

fn counted(count: u32, is_more: bool) -> u32 {
    match is_more {
        true => count.saturating_add(1),
        false => count.saturating_sub(1),
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;
    use std::collections::BTreeMap;

    use base::Duration;
    use hal::{NicShape, SpreadRule};

    use super::*;

    /// A card that notes what it was told.
    #[derive(Default)]
    struct Card {
        groups: Option<Vec<[u8; 6]>>,
        is_promiscuous: bool,
        told: u32,
        is_broken: bool,
    }

    impl Card {
        fn note(&mut self) -> Result<(), NicError> {
            self.told += 1;
            match self.is_broken {
                true => Err(NicError::Failed),
                false => Ok(()),
            }
        }

        fn takes(&self, group: MacAddr) -> bool {
            let listed = self.groups.as_ref();
            listed.is_none_or(|groups| groups.contains(&group.0))
        }
    }

    impl NicControl for Card {
        fn shape(&self) -> NicShape {
            NicShape {
                mac: [0; 6],
                mtu: 1500,
                speed_mbps: 1000,
                groups: vec![],
                can_poll: true,
            }
        }

        fn add_address(&mut self, _: u16, _: [u8; 6]) -> Result<(), NicError> {
            Err(NicError::Unsupported)
        }

        fn remove_address(&mut self, _: u16, _: [u8; 6]) {}

        fn set_promiscuous(&mut self, _: PromiscuousScope, on: bool) -> Result<(), NicError> {
            self.note()?;
            self.is_promiscuous = on;
            Ok(())
        }

        fn set_multicast(&mut self, filter: MulticastFilter<'_>) -> Result<(), NicError> {
            self.note()?;
            self.groups = match filter {
                MulticastFilter::All => None,
                MulticastFilter::Only(macs) => Some(macs.to_vec()),
            };
            Ok(())
        }

        fn spread(&mut self, _: u16, _: &SpreadRule<'_>) -> Result<(), NicError> {
            Err(NicError::Unsupported)
        }

        fn set_moderation(&mut self, _: u16, _: Duration) -> Result<(), NicError> {
            Err(NicError::Unsupported)
        }
    }

    fn group(last: u8) -> MacAddr {
        MacAddr([0x01, 0, 0x5e, 0, 1, last])
    }

    #[test]
    fn a_card_takes_the_groups_that_everybody_has_and_no_others_at_first() {
        let (mut wanted, mut card) = (Reception::new(), Card::default());
        wanted.tell(&mut card).expect("it works");
        assert_eq!(card.groups, Some(UNIVERSAL.to_vec()));
        assert!(!card.is_promiscuous);
    }

    #[test]
    fn a_group_is_taken_until_its_last_member_left() {
        let (mut wanted, mut card) = (Reception::new(), Card::default());
        for _ in 0..2 {
            wanted.join(group(7));
            wanted.tell(&mut card).expect("it works");
            assert!(card.takes(group(7)) && !card.takes(group(8)));
        }
        wanted.leave(group(7));
        wanted.tell(&mut card).expect("it works");
        assert!(card.takes(group(7)));
        wanted.leave(group(7));
        wanted.tell(&mut card).expect("it works");
        assert!(!card.takes(group(7)));
    }

    #[test]
    fn a_card_hears_of_changes_only() {
        let (mut wanted, mut card) = (Reception::new(), Card::default());
        wanted.join(group(1));
        wanted.want_all(true);
        wanted.tell(&mut card).expect("it works");
        assert_eq!(card.told, 2);
        wanted.join(group(1));
        wanted.want_all(true);
        wanted.want_all_for_links(true);
        wanted.leave(group(1));
        wanted.tell(&mut card).expect("it works");
        assert_eq!(card.told, 2);
    }

    #[test]
    fn all_groups_come_while_one_wants_them_and_then_those_that_were_joined() {
        let (mut wanted, mut card) = (Reception::new(), Card::default());
        wanted.join(group(1));
        wanted.want_all_groups(true);
        wanted.want_all_groups(true);
        wanted.want_all_groups(false);
        wanted.tell(&mut card).expect("it works");
        assert!(card.takes(group(9)));
        wanted.want_all_groups(false);
        wanted.tell(&mut card).expect("it works");
        assert!(card.takes(group(1)) && !card.takes(group(9)));
    }

    #[test]
    fn a_card_is_promiscuous_while_programs_or_links_want_it() {
        let (mut wanted, mut card) = (Reception::new(), Card::default());
        assert!(!wanted.want_all_for_links(true));
        wanted.want_all(true);
        wanted.tell(&mut card).expect("it works");
        assert!(wanted.want_all_for_links(false));
        wanted.tell(&mut card).expect("it works");
        assert!(card.is_promiscuous);
        wanted.want_all(false);
        wanted.tell(&mut card).expect("it works");
        assert!(!card.is_promiscuous);
        // One that leaves what it never wanted takes nobody else's away.
        wanted.want_all(false);
        wanted.want_all(true);
        wanted.tell(&mut card).expect("it works");
        assert!(card.is_promiscuous);
    }

    #[test]
    fn what_a_card_failed_to_hear_it_hears_with_the_next_change() {
        let (mut wanted, mut card) = (Reception::new(), Card::default());
        wanted.tell(&mut card).expect("it works");
        card.is_broken = true;
        wanted.join(group(3));
        wanted.want_all(true);
        assert_eq!(wanted.tell(&mut card), Err(NicError::Failed));
        card.is_broken = false;
        wanted.tell(&mut card).expect("it works");
        assert!(card.takes(group(3)) && card.is_promiscuous);
    }

    #[test]
    fn a_card_takes_after_any_changes_what_is_wanted_and_no_more() {
        for seed in 1..200_u64 {
            let (mut wanted, mut card) = (Reception::new(), Card::default());
            let mut members = BTreeMap::<u8, u32>::new();
            let mut random = seed;
            for _ in 0..200 {
                random = random
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                let (last, joins) = ((random >> 40) as u8 % 6, random >> 60 < 8);
                let count = members.entry(last).or_default();
                match joins {
                    true => wanted.join(group(last)),
                    false if *count == 0 => continue,
                    false => wanted.leave(group(last)),
                }
                *count = counted(*count, joins);
                wanted.tell(&mut card).expect("it works");
                for last in 0..6 {
                    let is_wanted = members.get(&last).is_some_and(|count| *count != 0);
                    assert_eq!(card.takes(group(last)), is_wanted, "seed {seed}");
                }
            }
        }
    }
}
