//! The links behind their lock, the card as they know it, and what `linkctl` needs of both.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use base::Duration;
use hal::{
    CardCounters, MulticastFilter, NicControl, NicError, NicShape, PromiscuousScope, SpreadRule,
    VlanFilter,
};
use link::counters::Kstat;
use link::links::LinkError;
use link::promisc::Promiscuity;
use link::rss::Rss;
use link::{Lane, LinkId, Links, StreamId};
use linkctl::{AddressError, AddressOf, DoorbellRow, FilterRow, RingCounts, RouteOf};
use mach::sync::Spin;
use wire::EtherType;

use super::owner::Doorbell;
use super::{addresses, change, nic, wire as card};
use crate::device::config::with_control;
use crate::device::{moderation, reception, ring};
use crate::stack;
use crate::stack::interface::CARD;

/// All links, once somebody has asked for any. Links are the machine's: whoever may administer them
/// sees all.
static LINKS: Spin<Option<Control>> = Spin::new(None);

struct Control {
    links: Links,
    card: Option<CardLink>,
}

/// The card's own link.
#[derive(Clone, Copy)]
pub(super) struct CardLink {
    pub link: LinkId,
    /// The hold that the card's stack has on it.
    pub stream: StreamId,
}

/// Looks at the links, or changes them.
pub(super) fn with_links<R>(act: impl FnOnce(&mut Links) -> R) -> R {
    act(&mut LINKS.lock().get_or_insert_with(Control::new).links)
}

/// The card's own link, if there is a card.
pub(super) fn card_link() -> Option<CardLink> {
    LINKS.lock().get_or_insert_with(Control::new).card
}

impl Control {
    fn new() -> Self {
        let mut links = Links::on(mach::cpu::count() as u32);
        let card = attach(&mut links);
        Self { links, card }
    }
}

fn attach(links: &mut Links) -> Option<CardLink> {
    let of = stack::first().interface(CARD)?;
    let nic = Card {
        mac: of.mac,
        mtu: of.mtu as u16,
    };
    // A new list takes any name that ends in a digit, and the card refuses nothing.
    let link = links
        .attach(&of.name, Box::new(nic), &Rss::default())
        .ok()?;
    let stream = open(links, link).ok()?;
    links.set_up(link, true).ok()?;
    Some(CardLink { link, stream })
}

/// A stack's hold on a link: it takes IP, and chooses among groups itself.
pub(super) fn open(links: &mut Links, link: LinkId) -> Result<StreamId, LinkError> {
    let stream = links.open(link)?;
    let wanted = [EtherType::Ipv4, EtherType::Arp, EtherType::Ipv6];
    let bound = wanted
        .iter()
        .try_for_each(|kind| links.bind(stream, kind.number()));
    let groups = Promiscuity::MULTI | Promiscuity::RX_ONLY;
    match bound.and_then(|()| links.promisc_on(stream, groups)) {
        Ok(()) => Ok(stream),
        Err(error) => {
            // It was opened a moment ago.
            let _ = links.close(stream);
            Err(error)
        }
    }
}

/// The control half of the card, which stays where it is: others set its filters again after
/// a reset. The stacks' rule for spreading stays too.
struct Card {
    mac: [u8; 6],
    mtu: u16,
}

impl Card {
    fn with<R>(
        &self,
        work: impl FnOnce(&mut dyn NicControl) -> Result<R, NicError>,
    ) -> Result<R, NicError> {
        with_control(work).unwrap_or(Err(NicError::Unsupported))
    }
}

impl NicControl for Card {
    fn shape(&self) -> NicShape {
        let own = NicShape {
            mac: self.mac,
            mtu: self.mtu,
            speed_mbps: 0,
            groups: Vec::new(),
            can_poll: true,
        };
        let of_card = with_control(|card| card.shape());
        let mut shape = of_card.unwrap_or(own);
        shape.mtu = self.mtu;
        // Pairs beyond the shards are at rest.
        let used = stack::first().count();
        for group in &mut shape.groups {
            group.rings.end = group.rings.end.min(used).max(group.rings.start);
        }
        shape
    }

    fn add_address(&mut self, group: u16, mac: [u8; 6]) -> Result<(), NicError> {
        self.with(|card| card.add_address(group, mac))
    }

    fn remove_address(&mut self, group: u16, mac: [u8; 6]) {
        with_control(|card| card.remove_address(group, mac));
    }

    /// Each card has one group, so its groups are the card.
    fn set_promiscuous(&mut self, _: PromiscuousScope, on: bool) -> Result<(), NicError> {
        reception::all_for_links(on)
    }

    /// The stacks have told the card of their groups (`reception`); no stream of a link has any.
    fn set_multicast(&mut self, _: MulticastFilter<'_>) -> Result<(), NicError> {
        Err(NicError::Unsupported)
    }

    /// The stacks told the card when it was attached (`steer`).
    fn spread(&mut self, _: u16, _: &SpreadRule<'_>) -> Result<(), NicError> {
        Err(NicError::Unsupported)
    }

    fn set_moderation(&mut self, ring: u16, spacing: Duration) -> Result<(), NicError> {
        self.with(|card| card.set_moderation(ring, spacing))?;
        moderation::is_told(ring, spacing);
        Ok(())
    }

    fn set_vlans(&mut self, filter: VlanFilter<'_>) -> Result<(), NicError> {
        self.with(|card| card.set_vlans(filter))
    }
}

/// The kernel as `linkctl` sees it.
pub(super) struct Shell;

impl linkctl::Shell for Shell {
    fn with_links<R>(&mut self, act: impl FnOnce(&mut Links) -> R) -> R {
        with_links(act)
    }

    fn each_lane(&mut self, port: LinkId, mut look: impl FnMut(&Lane)) {
        change::each_port(|lanes| {
            if lanes.port() == port {
                lanes.look(&mut look);
            }
        });
    }

    fn random(&mut self) -> u64 {
        random::next_u64()
    }

    fn device(&mut self, link: &str) -> String {
        link.to_string()
    }

    fn card_counters(&mut self, _link: &str) -> Option<CardCounters> {
        let first = stack::first();
        let card = first.interface(CARD)?;
        Some(card::counters(&first.traffic(&card)))
    }

    fn rings(&mut self, _link: &str) -> Vec<RingCounts> {
        ring::pair_counts()
    }

    /// Of the card's own link those for its own stack.
    fn taken(&mut self, link: &str) -> Vec<u64> {
        let Some(link) = with_links(|links| links.find(link)) else {
            return Vec::new();
        };
        let first = stack::first();
        match card_link().is_some_and(|card| card.link == link) {
            true => first.taken(0..first.count()),
            false => nic::taken(link),
        }
    }

    /// A NIC sends by one, so that its frames keep their order.
    fn tx_rings(&mut self, link: &str, all: u16) -> u16 {
        let link = with_links(|links| links.find(link));
        match link.is_some() && link == card_link().map(|card| card.link) {
            true => all,
            false => 1,
        }
    }

    fn change_address(&mut self, of: &AddressOf, is_new: bool) -> Result<(), AddressError> {
        addresses::change_address(of, is_new)
    }

    fn change_route(&mut self, of: &RouteOf, is_new: bool) -> Result<(), AddressError> {
        addresses::change_route(of, is_new)
    }

    fn overflowed(&mut self, link: &str) -> u64 {
        let link = with_links(|links| links.find(link));
        link.map_or(0, nic::overflowed)
    }

    fn owner_counts(&mut self, link: &str) -> Vec<(u16, Vec<Kstat>)> {
        let link = with_links(|links| links.find(link));
        link.map_or_else(Vec::new, nic::owner_counts)
    }

    fn filters(&mut self, link: &str) -> Vec<FilterRow> {
        let link = with_links(|links| links.find(link));
        link.map_or_else(Vec::new, nic::filters)
    }

    fn revoke_filter(&mut self, link: &str, id: u32) -> bool {
        let link = with_links(|links| links.find(link));
        link.is_some_and(|link| nic::revoke(link, id))
    }

    fn doorbells(&mut self, link: &str) -> Vec<DoorbellRow> {
        let link = with_links(|links| links.find(link));
        let all = link.map_or_else(Vec::new, nic::doorbells);
        let row = |(queue, now): (u16, Doorbell)| {
            let [rx, fill, tx, completion] = now.filled;
            DoorbellRow {
                queue,
                process: now.process,
                is_armed: now.is_armed,
                wakes: now.wakes,
                rx,
                fill,
                tx,
                completion,
            }
        };
        all.into_iter().map(row).collect()
    }
}
