//! The other end: requests become calls of the link layer.
//!
//! Names are looked up and the operation is done under one hold of the links, so nobody
//! sees half of it. Only statistics need two steps, for the lanes come before the links
//! in the lock order; a link that goes away between them has carried nothing.

use alloc::string::String;
use alloc::vec::Vec;

use hal::{CardCounters, PortCounters};
use link::counters::{Kstat, RxCounts};
use link::lane::Lane;
use link::steer::Fanout;
use link::{LinkId, Links};

use crate::answer::{AddressError, Answer, DoorbellRow, FilterRow, Refusal};
use crate::request::{AddressOf, Request, RouteOf};

mod change;
mod drops;
mod kstats;
mod show;
mod statistics;

/// What the function needs of who holds the links.
pub trait Shell {
    /// Looks at the links, or changes them, under their lock.
    fn with_links<R>(&mut self, act: impl FnOnce(&mut Links) -> R) -> R;

    /// Shows each lane of a port in the order of its rings, one after another under its lock.
    /// Never called by [`with_links`](Self::with_links).
    fn each_lane(&mut self, port: LinkId, look: impl FnMut(&Lane));

    /// Unpredictable bits.
    fn random(&mut self) -> u64;

    /// The name of the device behind a card's own link.
    fn device(&mut self, link: &str) -> String;

    /// What the card behind a card's own link has counted, if it counts.
    fn card_counters(&mut self, link: &str) -> Option<CardCounters>;

    /// What each ring of the card behind a card's own link has counted, in their order.
    fn rings(&mut self, link: &str) -> Vec<RingCounts>;

    /// Frames of a link that each CPU has taken, from the first one on; nothing if nobody counts.
    fn taken(&mut self, link: &str) -> Vec<u64>;

    /// How many of a card's rings, of which there are `all`, a link over it or its own sends by; they
    /// are the first ones.
    fn tx_rings(&mut self, link: &str, all: u16) -> u16;

    /// Adds an address to the interface of a link in the first stack, or takes it away. Never called
    /// by [`with_links`](Self::with_links).
    fn change_address(&mut self, of: &AddressOf, is_new: bool) -> Result<(), AddressError>;

    /// The same for a route.
    fn change_route(&mut self, of: &RouteOf, is_new: bool) -> Result<(), AddressError>;

    /// Frames that a link's stack had no room for.
    fn overflowed(&mut self, link: &str) -> u64;

    /// What the programs count that take a link's frames in its stack's place, by their queues.
    fn owner_counts(&mut self, link: &str) -> Vec<(u16, Vec<Kstat>)>;

    /// The filters of a link.
    fn filters(&mut self, link: &str) -> Vec<FilterRow>;

    /// Takes a filter of a link from whoever holds it; false if there is none of that number.
    fn revoke_filter(&mut self, link: &str, id: u32) -> bool;

    /// The programs that have queues of a link.
    fn doorbells(&mut self, link: &str) -> Vec<DoorbellRow>;
}

/// What a ring did, and what became of its frames on their way to other CPUs.
#[derive(Clone, Debug, Default)]
pub struct RingCounts {
    /// By its driver.
    pub port: PortCounters,
    /// What its CPU took from it while no lane did.
    pub pulled: RxCounts,
    /// Nanoseconds that the card keeps its interrupts apart.
    pub spacing_ns: u64,
    /// The CPU that polls it now; `None` where whichever CPU waits does.
    pub cpu: Option<u32>,
    /// What went into each CPU's soft ring; nothing where there is one CPU.
    pub fanout: Vec<Fanout>,
    /// Dropped: a soft ring was full.
    pub soft_ring_drops: u64,
    /// Dropped: fragments of TCP segments, whose CPU nobody can tell.
    pub tcp_fragments: u64,
}

/// What who asks may do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rights {
    /// Look.
    Look,
    /// Look and change.
    Change,
}

/// The answer to the bytes that a program wrote: always one, whatever they are.
pub fn answer_to(request: &[u8], rights: Rights, shell: &mut impl Shell) -> Vec<u8> {
    let answer = match Request::decode(request) {
        Ok(request) => serve(&request, rights, shell),
        Err(_) => Answer::Refused(Refusal::Malformed),
    };
    let too_long = || Answer::Refused(Refusal::TooLong).encode();
    // A refusal without a text always fits.
    let bytes = answer.encode().or_else(|_| too_long());
    bytes.unwrap_or_default()
}

/// The answer to a request.
pub fn serve(request: &Request, rights: Rights, shell: &mut impl Shell) -> Answer {
    if request.is_change() && rights != Rights::Change {
        return Answer::Refused(Refusal::NotPermitted);
    }
    let answer = match request {
        Request::Links { from } => Ok(show::links(*from, shell)),
        Request::Groups { link } => show::groups(link, shell),
        Request::Props { link } => shell.with_links(|links| show::props(links, link)),
        Request::Statistics { link } => statistics::of_link(link, shell),
        Request::Kstats { link, from } => kstats::of_link(link, *from, shell),
        Request::Drops { link, ring } => drops::of_ring(link, *ring, shell),
        Request::Flows { from } => Ok(shell.with_links(|links| show::flows(links, *from))),
        Request::FlowStatistics { flow } => statistics::of_flow(flow, shell),
        Request::CreateVnic(vnic) => {
            let bits = shell.random();
            shell.with_links(|links| change::create_vnic(links, vnic, bits))
        }
        Request::Filters { link } => {
            is_there(link, shell).map(|()| Answer::Filters(shell.filters(link)))
        }
        Request::DeleteFilter { link, id } => {
            is_there(link, shell).and_then(|()| match shell.revoke_filter(link, *id) {
                true => Ok(Answer::Done),
                false => Err(Refusal::NoSuchFilter),
            })
        }
        Request::Doorbells { link } => {
            is_there(link, shell).map(|()| Answer::Doorbells(shell.doorbells(link)))
        }
        Request::AddAddress(of) => done(shell.change_address(of, true)),
        Request::RemoveAddress(of) => done(shell.change_address(of, false)),
        Request::AddRoute(of) => done(shell.change_route(of, true)),
        Request::RemoveRoute(of) => done(shell.change_route(of, false)),
        change => shell.with_links(|links| change::make(links, change)),
    };
    answer.unwrap_or_else(Answer::Refused)
}

fn done(changed: Result<(), AddressError>) -> Result<Answer, Refusal> {
    changed.map(|()| Answer::Done).map_err(Refusal::Address)
}

fn is_there(link: &str, shell: &mut impl Shell) -> Result<(), Refusal> {
    shell.with_links(|links| find(links, link)).map(drop)
}

fn find(links: &Links, name: &str) -> Result<LinkId, Refusal> {
    let found = links.find(name);
    found.ok_or_else(|| Refusal::NoSuchLink { name: name.into() })
}
