//! A machine's other end of `dladm` and `flowadm`: a LAN that answers requests.

use ::link::counters::Kstat;
use ::link::lane::Lane;
use ::link::{LinkId, Links};
use hal::CardCounters;
use linkctl::{
    AddressError, AddressOf, DoorbellRow, FilterRow, Rights, RingCounts, RouteOf, Shell,
};

use super::Lan;

/// A LAN with what a kernel adds to it.
pub struct Machine {
    /// The links and their lanes.
    pub lan: Lan,
    /// What who asks may do.
    pub rights: Rights,
    /// What the card says that it counted, if it counts.
    pub card: Option<CardCounters>,
    /// Addresses of links' interfaces.
    pub addresses: Vec<AddressOf>,
    /// Routes by them.
    pub routes: Vec<RouteOf>,
    /// What a program counts that takes each link's frames.
    pub owner_counts: Vec<(u16, Vec<Kstat>)>,
    /// Filters of each link.
    pub filters: Vec<FilterRow>,
    /// Queues of each link that programs have.
    pub doorbells: Vec<DoorbellRow>,
    random: u64,
}

impl Machine {
    /// Over a LAN, for an administrator. Random bits count up from one.
    pub fn new(lan: Lan) -> Self {
        Self {
            lan,
            rights: Rights::Change,
            card: None,
            addresses: Vec::new(),
            routes: Vec::new(),
            owner_counts: Vec::new(),
            filters: Vec::new(),
            doorbells: Vec::new(),
            random: 0,
        }
    }
}

/// Adds what is new, and takes away what is there.
fn change<T: Clone + PartialEq>(
    all: &mut Vec<T>,
    of: &T,
    is_new: bool,
) -> Result<(), AddressError> {
    match (all.iter().position(|known| known == of), is_new) {
        (Some(_), true) => return Err(AddressError::Exists),
        (None, true) => all.push(of.clone()),
        (Some(at), false) => drop(all.remove(at)),
        (None, false) => return Err(AddressError::NotThere),
    }
    Ok(())
}

impl Machine {
    fn has_interface(&self, link: &str) -> Result<(), AddressError> {
        let found = self.lan.links.find(link);
        found.map(drop).ok_or(AddressError::NoInterface)
    }
}

impl Shell for Machine {
    fn with_links<R>(&mut self, act: impl FnOnce(&mut Links) -> R) -> R {
        act(&mut self.lan.links)
    }

    fn each_lane(&mut self, port: LinkId, look: impl FnMut(&Lane)) {
        if port == self.lan.port {
            self.lan.lanes.iter().for_each(look);
        }
    }

    fn random(&mut self) -> u64 {
        self.random += 1;
        self.random
    }

    fn device(&mut self, link: &str) -> String {
        format!("card-of-{link}")
    }

    fn card_counters(&mut self, _: &str) -> Option<CardCounters> {
        self.card
    }

    /// Each CPU has the ring of its number.
    fn rings(&mut self, _: &str) -> Vec<RingCounts> {
        let lanes = (0..).zip(&self.lan.lanes);
        let ring = |(number, _)| RingCounts {
            cpu: Some(number),
            ..RingCounts::default()
        };
        lanes.map(ring).collect()
    }

    fn taken(&mut self, _: &str) -> Vec<u64> {
        Vec::new()
    }

    /// A card's own link has a lane for each ring, the others have the first, as in the kernel.
    fn tx_rings(&mut self, link: &str, all: u16) -> u16 {
        match self.lan.links.find(link) == Some(self.lan.port) {
            true => all,
            false => 1,
        }
    }

    fn change_address(&mut self, of: &AddressOf, is_new: bool) -> Result<(), AddressError> {
        self.has_interface(&of.link)?;
        change(&mut self.addresses, of, is_new)
    }

    fn change_route(&mut self, of: &RouteOf, is_new: bool) -> Result<(), AddressError> {
        self.has_interface(&of.link)?;
        change(&mut self.routes, of, is_new)
    }

    fn overflowed(&mut self, _: &str) -> u64 {
        0
    }

    fn owner_counts(&mut self, _: &str) -> Vec<(u16, Vec<Kstat>)> {
        self.owner_counts.clone()
    }

    fn filters(&mut self, _: &str) -> Vec<FilterRow> {
        self.filters.clone()
    }

    fn revoke_filter(&mut self, _: &str, id: u32) -> bool {
        let before = self.filters.len();
        self.filters.retain(|filter| filter.id != id);
        self.filters.len() != before
    }

    fn doorbells(&mut self, _: &str) -> Vec<DoorbellRow> {
        self.doorbells.clone()
    }
}
