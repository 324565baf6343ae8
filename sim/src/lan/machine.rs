//! A machine's other end of `dladm` and `flowadm`: a LAN that answers requests.

use ::link::lane::Lane;
use ::link::{LinkId, Links};
use hal::CardCounters;
use linkctl::{Rights, RingCounts, Shell};

use super::Lan;

/// A LAN with what a kernel adds to it.
pub struct Machine {
    /// The links and their lanes.
    pub lan: Lan,
    /// What who asks may do.
    pub rights: Rights,
    /// What the card says that it counted, if it counts.
    pub card: Option<CardCounters>,
    random: u64,
}

impl Machine {
    /// Over a LAN, for an administrator. Random bits count up from one.
    pub fn new(lan: Lan) -> Self {
        Self {
            lan,
            rights: Rights::Change,
            card: None,
            random: 0,
        }
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

    fn rings(&mut self, _: &str) -> Vec<RingCounts> {
        let lanes = self.lan.lanes.iter();
        lanes.map(|_| RingCounts::default()).collect()
    }

    /// A card's own link has a lane for each ring, the others have the first, as in the kernel.
    fn tx_rings(&mut self, link: &str, all: u16) -> u16 {
        match self.lan.links.find(link) == Some(self.lan.port) {
            true => all,
            false => 1,
        }
    }

    fn overflowed(&mut self, _: &str) -> u64 {
        0
    }
}
