//! Where unicast addresses go: into filters of groups, promiscuous mode last.
//!
//! A new address first tries a group that nobody uses: then its frames need no
//! classification and have interrupts of their own. If there is none, it joins the
//! default group (group 0). When that has no filter left, it becomes promiscuous, and
//! only it: frames for the other groups' addresses still go there. A card without groups
//! becomes promiscuous as a whole.
//!
//! Invariants:
//! - *Placed stays placed*: an address does not change groups while anybody has it, for
//!   its frames would change rings and could overtake each other. It may get a filter of
//!   the default group that another one leaves.
//! - *Promiscuous for a reason*: the card is promiscuous exactly while an address has no
//!   filter or somebody listens to everything.

use alloc::vec::Vec;

use hal::{NicControl, NicError, NicShape, PromiscuousScope, RingGroup};
use wire::MacAddr;

/// The group that addresses share.
pub const DEFAULT_GROUP: u16 = 0;

/// What a link wants for its receive rings (`rxrings`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum RingsWanted {
    /// A group of its own if one is free.
    #[default]
    Any,
    /// A group of its own, or none at all.
    Hardware,
    /// The default group.
    Software,
    /// A group of its own with at least so many rings.
    AtLeast(u16),
}

impl RingsWanted {
    /// Whether nothing but a group of its own will do.
    fn is_hardware(self) -> bool {
        matches!(self, Self::Hardware | Self::AtLeast(_))
    }

    /// Whether this group can be its own.
    fn takes(self, group: &RingGroup) -> bool {
        match self {
            Self::Any | Self::Hardware => !group.rings.is_empty(),
            Self::AtLeast(rings) => group.rings.len() >= usize::from(rings),
            Self::Software => false,
        }
    }
}

/// Where an address is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// It has this group to itself.
    Own(u16),
    /// It has a filter of the default group.
    Default,
    /// It has no filter: the default group, or the card, is promiscuous.
    Unfiltered,
}

impl Place {
    /// The group whose rings get the frames.
    pub const fn group(self) -> u16 {
        match self {
            Self::Own(group) => group,
            Self::Default | Self::Unfiltered => DEFAULT_GROUP,
        }
    }
}

/// Why an address was not placed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PlaceError {
    /// No free group has the rings that were asked for.
    NoGroup,
    /// The card refused.
    Nic(NicError),
}

struct Entry {
    mac: MacAddr,
    place: Place,
    users: u32,
}

/// The addresses of one card.
pub struct Placement {
    groups: Vec<RingGroup>,
    entries: Vec<Entry>,
    /// Streams that listen to everything.
    listeners: u32,
    is_promiscuous: bool,
}

impl Placement {
    /// The card's own address is in its default group from the start.
    pub fn new(shape: &NicShape) -> Self {
        Self {
            groups: shape.groups.clone(),
            entries: alloc::vec![Entry {
                mac: MacAddr(shape.mac),
                place: Place::Default,
                users: 1,
            }],
            listeners: 0,
            is_promiscuous: false,
        }
    }

    /// Where an address is.
    pub fn place_of(&self, mac: MacAddr) -> Option<Place> {
        let entry = self.entries.iter().find(|entry| entry.mac == mac)?;
        Some(entry.place)
    }

    /// Whether the default group, or the card, takes what no filter claims.
    pub fn is_promiscuous(&self) -> bool {
        self.is_promiscuous
    }

    /// Groups that nobody uses.
    pub fn free_groups(&self) -> usize {
        (1..self.groups.len() as u16)
            .filter(|group| self.is_free(*group))
            .count()
    }

    fn is_free(&self, group: u16) -> bool {
        !self
            .entries
            .iter()
            .any(|entry| entry.place == Place::Own(group))
    }

    /// Receives frames for `mac` too. A second user shares the first one's place.
    pub fn add(
        &mut self,
        nic: &mut dyn NicControl,
        mac: MacAddr,
        wanted: RingsWanted,
    ) -> Result<Place, PlaceError> {
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.mac == mac) {
            entry.users += 1;
            return Ok(entry.place);
        }
        let place = self.find_place(nic, mac, wanted)?;
        self.entries.push(Entry {
            mac,
            place,
            users: 1,
        });
        match (place, self.update_promiscuity(nic)) {
            (Place::Unfiltered, Err(error)) => {
                self.entries.pop();
                Err(PlaceError::Nic(error))
            }
            _ => Ok(place),
        }
    }

    fn find_place(
        &self,
        nic: &mut dyn NicControl,
        mac: MacAddr,
        wanted: RingsWanted,
    ) -> Result<Place, PlaceError> {
        match self.own_group(nic, mac, wanted) {
            Some(group) => Ok(Place::Own(group)),
            None if wanted.is_hardware() => Err(PlaceError::NoGroup),
            None => self.shared_place(nic, mac),
        }
    }

    /// A filter of the default group, if it has one left.
    fn shared_place(&self, nic: &mut dyn NicControl, mac: MacAddr) -> Result<Place, PlaceError> {
        let has_default = !self.groups.is_empty();
        match has_default.then(|| nic.add_address(DEFAULT_GROUP, mac.0)) {
            Some(Ok(())) => Ok(Place::Default),
            Some(Err(NicError::FiltersFull)) | None => Ok(Place::Unfiltered),
            Some(Err(error)) => Err(PlaceError::Nic(error)),
        }
    }

    /// The first free group that takes the address.
    fn own_group(
        &self,
        nic: &mut dyn NicControl,
        mac: MacAddr,
        wanted: RingsWanted,
    ) -> Option<u16> {
        let groups = (0..).zip(&self.groups).skip(1);
        let mut fitting =
            groups.filter(|(group, shape)| wanted.takes(shape) && self.is_free(*group));
        let taken = fitting.find(|(group, _)| nic.add_address(*group, mac.0).is_ok());
        taken.map(|(group, _)| group)
    }

    /// Moves an address to where its only user wants it. On failure it is where it was: what
    /// it has is given back only once it has something else.
    pub fn replace(
        &mut self,
        nic: &mut dyn NicControl,
        mac: MacAddr,
        wanted: RingsWanted,
    ) -> Result<Place, PlaceError> {
        let Some(index) = self.entries.iter().position(|entry| entry.mac == mac) else {
            return self.add(nic, mac, wanted);
        };
        let old = self.entries[index].place;
        if self.entries[index].users > 1 || self.suits(old, wanted) {
            return Ok(old);
        }
        let new = match (self.own_group(nic, mac, wanted), old) {
            (Some(group), _) => Place::Own(group),
            (None, _) if wanted.is_hardware() => return Err(PlaceError::NoGroup),
            (None, Place::Own(_)) => self.shared_place(nic, mac)?,
            (None, Place::Default | Place::Unfiltered) => return Ok(old),
        };
        self.entries[index].place = new;
        if let (Place::Unfiltered, Err(error)) = (new, self.update_promiscuity(nic)) {
            self.entries[index].place = old;
            return Err(PlaceError::Nic(error));
        }
        self.give_back(nic, mac, old);
        Ok(self.entries[index].place)
    }

    /// Whether an address that is there need not move.
    fn suits(&self, place: Place, wanted: RingsWanted) -> bool {
        match place {
            Place::Own(group) => {
                let shape = self.groups.get(usize::from(group));
                shape.is_some_and(|shape| wanted.takes(shape))
            }
            Place::Default | Place::Unfiltered => wanted == RingsWanted::Software,
        }
    }

    /// Gives one use of `mac` up; the last one frees its place.
    pub fn remove(&mut self, nic: &mut dyn NicControl, mac: MacAddr) {
        let Some(index) = self.entries.iter().position(|entry| entry.mac == mac) else {
            return;
        };
        self.entries[index].users -= 1;
        if self.entries[index].users > 0 {
            return;
        }
        let gone = self.entries.swap_remove(index);
        self.give_back(nic, mac, gone.place);
    }

    /// The filter that `mac` had is for others now. Cards may share filters among groups.
    fn give_back(&mut self, nic: &mut dyn NicControl, mac: MacAddr, place: Place) {
        if place != Place::Unfiltered {
            nic.remove_address(place.group(), mac.0);
            self.pass_filter_on(nic);
        }
        // A card that does not leave promiscuous mode sends us frames that we drop.
        let _ = self.update_promiscuity(nic);
    }

    fn pass_filter_on(&mut self, nic: &mut dyn NicControl) {
        if self.groups.is_empty() {
            return;
        }
        let waiting = |entry: &&mut Entry| entry.place == Place::Unfiltered;
        if let Some(entry) = self.entries.iter_mut().find(waiting)
            && nic.add_address(DEFAULT_GROUP, entry.mac.0).is_ok()
        {
            entry.place = Place::Default;
        }
    }

    /// One stream more listens to everything.
    pub fn listen(&mut self, nic: &mut dyn NicControl) -> Result<(), NicError> {
        self.listeners += 1;
        self.update_promiscuity(nic)
            .inspect_err(|_| self.listeners -= 1)
    }

    /// One stream less.
    pub fn unlisten(&mut self, nic: &mut dyn NicControl) {
        self.listeners = self.listeners.saturating_sub(1);
        let _ = self.update_promiscuity(nic);
    }

    fn update_promiscuity(&mut self, nic: &mut dyn NicControl) -> Result<(), NicError> {
        let unfiltered = |entry: &Entry| entry.place == Place::Unfiltered;
        let wanted = self.listeners > 0 || self.entries.iter().any(unfiltered);
        if wanted == self.is_promiscuous {
            return Ok(());
        }
        let scope = match self.groups.is_empty() {
            true => PromiscuousScope::Card,
            false => PromiscuousScope::Group(DEFAULT_GROUP),
        };
        nic.set_promiscuous(scope, wanted)?;
        self.is_promiscuous = wanted;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use base::Duration;

    use hal::SpreadRule;

    use super::*;

    /// Filters as the card has them, by group.
    struct Fake {
        shape: NicShape,
        filters: Vec<(u16, MacAddr)>,
        promiscuous: Option<PromiscuousScope>,
    }

    impl NicControl for Fake {
        fn shape(&self) -> NicShape {
            self.shape.clone()
        }

        fn add_address(&mut self, group: u16, mac: [u8; 6]) -> Result<(), NicError> {
            let used = self.filters.iter().filter(|(at, _)| *at == group).count();
            if used >= usize::from(self.shape.groups[usize::from(group)].filters) {
                return Err(NicError::FiltersFull);
            }
            self.filters.push((group, MacAddr(mac)));
            Ok(())
        }

        fn remove_address(&mut self, group: u16, mac: [u8; 6]) {
            self.filters.retain(|at| *at != (group, MacAddr(mac)));
        }

        fn set_promiscuous(&mut self, scope: PromiscuousScope, on: bool) -> Result<(), NicError> {
            self.promiscuous = on.then_some(scope);
            Ok(())
        }

        fn set_multicast(&mut self, _: hal::MulticastFilter<'_>) -> Result<(), NicError> {
            Ok(())
        }

        fn spread(&mut self, _: u16, _: &SpreadRule<'_>) -> Result<(), NicError> {
            Ok(())
        }

        fn set_moderation(&mut self, _: u16, _: Duration) -> Result<(), NicError> {
            Ok(())
        }
    }

    /// A default group of two rings and two filters, and `others` of one ring and one filter.
    fn card(others: u16) -> (Fake, Placement) {
        let default = RingGroup {
            rings: 0..2,
            filters: 2,
        };
        let own = (2..2 + others).map(|ring| RingGroup {
            rings: ring..ring + 1,
            filters: 1,
        });
        with_groups(core::iter::once(default).chain(own).collect())
    }

    fn with_groups(groups: Vec<RingGroup>) -> (Fake, Placement) {
        let shape = NicShape {
            mac: mac(0).0,
            mtu: 1500,
            speed_mbps: 1000,
            groups,
            can_poll: true,
        };
        let placement = Placement::new(&shape);
        let has_groups = !shape.groups.is_empty();
        let nic = Fake {
            shape,
            filters: has_groups.then_some((0, mac(0))).into_iter().collect(),
            promiscuous: None,
        };
        (nic, placement)
    }

    fn mac(last: u8) -> MacAddr {
        MacAddr([2, 0, 0, 0, 0, last])
    }

    const DEFAULT: Option<PromiscuousScope> = Some(PromiscuousScope::Group(0));

    #[test]
    fn free_groups_come_first_then_default_filters_then_the_default_group_is_promiscuous() {
        let (mut nic, mut placement) = card(3);
        let places: Vec<Place> = (1..=5)
            .map(|last| placement.add(&mut nic, mac(last), RingsWanted::Any))
            .map(|place| place.expect("placed"))
            .collect();
        let expected = [
            Place::Own(1),
            Place::Own(2),
            Place::Own(3),
            Place::Default,
            Place::Unfiltered,
        ];
        assert_eq!(places, expected);
        assert_eq!(nic.promiscuous, DEFAULT);
    }

    #[test]
    fn the_card_is_not_promiscuous_before_the_last_filter_is_taken() {
        let (mut nic, mut placement) = card(1);
        for last in 1..=2 {
            placement
                .add(&mut nic, mac(last), RingsWanted::Any)
                .expect("placed");
            assert_eq!(nic.promiscuous, None);
        }
        placement
            .add(&mut nic, mac(3), RingsWanted::Any)
            .expect("placed");
        assert_eq!(nic.promiscuous, DEFAULT);
    }

    #[test]
    fn a_filter_that_is_given_back_ends_promiscuous_mode() {
        let (mut nic, mut placement) = card(0);
        for last in 1..=2 {
            placement
                .add(&mut nic, mac(last), RingsWanted::Any)
                .expect("placed");
        }
        assert_eq!(placement.place_of(mac(2)), Some(Place::Unfiltered));
        placement.remove(&mut nic, mac(1));
        assert_eq!(placement.place_of(mac(2)), Some(Place::Default));
        assert_eq!(nic.promiscuous, None);
        assert!(nic.filters.contains(&(0, mac(2))));
    }

    #[test]
    fn a_card_without_groups_becomes_promiscuous_as_a_whole() {
        let (mut nic, mut placement) = with_groups(Vec::new());
        let place = placement.add(&mut nic, mac(1), RingsWanted::Any);
        assert_eq!(place, Ok(Place::Unfiltered));
        assert_eq!(nic.promiscuous, Some(PromiscuousScope::Card));
    }

    #[test]
    fn an_address_stays_in_its_group_while_anybody_uses_it() {
        let (mut nic, mut placement) = card(1);
        let wanted = RingsWanted::Any;
        assert_eq!(placement.add(&mut nic, mac(1), wanted), Ok(Place::Own(1)));
        assert_eq!(placement.add(&mut nic, mac(1), wanted), Ok(Place::Own(1)));
        placement.remove(&mut nic, mac(1));
        assert_eq!(placement.free_groups(), 0);
        placement.remove(&mut nic, mac(1));
        assert_eq!(placement.free_groups(), 1);
    }

    #[test]
    fn who_asks_for_hardware_rings_gets_them_or_an_error() {
        let (mut nic, mut placement) = card(1);
        let asked = RingsWanted::AtLeast(2);
        assert_eq!(
            placement.add(&mut nic, mac(1), asked),
            Err(PlaceError::NoGroup)
        );
        let software = placement.add(&mut nic, mac(1), RingsWanted::Software);
        assert_eq!(software, Ok(Place::Default));
        let hardware = placement.add(&mut nic, mac(2), RingsWanted::Hardware);
        assert_eq!(hardware, Ok(Place::Own(1)));
        let another = placement.add(&mut nic, mac(3), RingsWanted::Hardware);
        assert_eq!(another, Err(PlaceError::NoGroup));
    }

    #[test]
    fn who_is_refused_other_rings_keeps_those_it_has() {
        let (mut nic, mut placement) = card(1);
        let add = |nic: &mut Fake, placement: &mut Placement, last, wanted| {
            placement.add(nic, mac(last), wanted).expect("placed")
        };
        add(&mut nic, &mut placement, 1, RingsWanted::Any);
        add(&mut nic, &mut placement, 2, RingsWanted::Any);
        add(&mut nic, &mut placement, 3, RingsWanted::Any);
        let filters = nic.filters.clone();
        for last in 1..=3 {
            let before = placement.place_of(mac(last));
            let refused = placement.replace(&mut nic, mac(last), RingsWanted::AtLeast(2));
            assert_eq!(refused, Err(PlaceError::NoGroup));
            assert_eq!(placement.place_of(mac(last)), before);
        }
        assert_eq!(nic.filters, filters);
        let stays = placement.replace(&mut nic, mac(1), RingsWanted::Hardware);
        assert_eq!(stays, Ok(Place::Own(1)));
    }

    #[test]
    fn who_moves_leaves_its_filter_to_others() {
        let (mut nic, mut placement) = card(1);
        for last in 1..=3 {
            placement
                .add(&mut nic, mac(last), RingsWanted::Any)
                .expect("placed");
        }
        let software = RingsWanted::Software;
        let shared = placement.replace(&mut nic, mac(1), software);
        assert_eq!(shared, Ok(Place::Unfiltered));
        let hardware = placement.replace(&mut nic, mac(2), RingsWanted::Hardware);
        assert_eq!(hardware, Ok(Place::Own(1)));
        assert!(nic.filters.contains(&(1, mac(2))));
        let unfiltered = (1..=3).filter(|last| {
            let place = placement.place_of(mac(*last));
            place == Some(Place::Unfiltered)
        });
        assert_eq!(unfiltered.count(), 1);
    }

    #[test]
    fn the_card_is_promiscuous_as_long_as_somebody_listens_to_everything() {
        let (mut nic, mut placement) = card(0);
        placement.listen(&mut nic).expect("promiscuous");
        placement.listen(&mut nic).expect("promiscuous");
        placement.unlisten(&mut nic);
        assert_eq!(nic.promiscuous, DEFAULT);
        placement.unlisten(&mut nic);
        assert_eq!(nic.promiscuous, None);
    }
}
