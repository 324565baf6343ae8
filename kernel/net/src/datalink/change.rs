//! Requests, one after another; and what follows from a change: lanes for ports that are
//! used, those beside a card that is not plain, a NIC for each VNIC and VLAN, the MTU.

use alloc::sync::Arc;
use alloc::vec::Vec;

use link::LinkId;
use link::links::{Class, LinkError, LinkInfo};
use link::moderation::Throttling;
use linkctl::{Answer, Refusal, Request, Rights};
use mach::sync::Spin;
use sync::{Mutex, Result};

use super::control::{self, CardLink, Shell, with_links};
use super::lanes::Lanes;
use super::nic;
use super::owner::{self, FrameOwner, Ownership};
use crate::device::{moderation, runners};
use crate::stack::interface::CARD;
use crate::stack::interface::Interface;
use crate::stack::{self, NetStack};

/// Ports that carry something. Links are the machine's.
static PORTS: Spin<Vec<Arc<Lanes>>> = Spin::new(Vec::new());
/// Held from a request to what follows from it. Links are the machine's.
static CHANGING: Mutex<()> = Mutex::new(());

/// The answer to the bytes that a program wrote.
pub(super) fn answer_to(bytes: &[u8], rights: Rights) -> Vec<u8> {
    let _changing = CHANGING.lock();
    let request = Request::decode(bytes).ok();
    let changes = rights == Rights::Change && request.as_ref().is_some_and(Request::is_change);
    if changes && let Some(Request::Delete { link, class }) = &request {
        vacate(link, *class);
    }
    let answer = linkctl::answer_to(bytes, rights, &mut Shell);
    match changes.then(settle) {
        Some(refused) if !refused.is_empty() => undo(&refused),
        _ => answer,
    }
}

/// Links that get no interface are not made.
fn undo(refused: &[LinkId]) -> Vec<u8> {
    for link in refused {
        // Nobody can have opened it yet.
        let _ = with_links(|links| links.delete(*link));
    }
    settle();
    let answer = Answer::Refused(Refusal::Link(LinkError::TooMany));
    answer.encode().unwrap_or_default()
}

/// Moves an interface over a link, but not the card's own, into another stack.
///
/// Errors: those of [`nic::move_to`].
pub fn move_interface(from: &Arc<NetStack>, number: u32, to: &Arc<NetStack>) -> Result<()> {
    let _changing = CHANGING.lock();
    nic::move_to(from, number, to)
}

/// Gives an interface's frames to `owner`, whom the end of the link will not miss; see [`owner::own`].
///
/// Errors: those of [`owner::own`].
pub fn own(
    of: &Arc<NetStack>,
    (interface, queue): (u32, u16),
    owner: Arc<dyn FrameOwner>,
    is_taker: bool,
) -> Result<Ownership> {
    one_at_a_time(|| owner::own(of, (interface, queue), owner, is_taker))
}

/// Calls `work` while nobody else changes links or their owners.
pub(super) fn one_at_a_time<R>(work: impl FnOnce() -> R) -> R {
    let _changing = CHANGING.lock();
    work()
}

/// Does what the records of a file ask for; `complain` hears a sentence for each that is not
/// done.
pub fn restore(file: &[u8], complain: &mut dyn FnMut(&str)) {
    let _changing = CHANGING.lock();
    let mut ask = |request: &Request| {
        if request.needs_interface() {
            // Of a link that an earlier line made; what is refused is refused again below.
            settle();
        }
        linkctl::serve(request, Rights::Change, &mut Shell)
    };
    linkctl::restore(file, &mut ask, complain);
    let refused = settle();
    if !refused.is_empty() {
        complain("links are missing: a network stack has no room for their interfaces; keep fewer");
        undo(&refused);
    }
}

/// Deletes a VNIC, with its interface and what that had of addresses and routes. One that is not there is no failure.
///
/// A program that has its frames is told that the link is gone.
///
/// Errors: `NotA` for another kind of link.
pub fn remove_vnic(name: &str) -> core::result::Result<(), Refusal> {
    let request = Request::Delete {
        link: name.into(),
        class: Class::Vnic,
    };
    let _changing = CHANGING.lock();
    vacate(name, Class::Vnic);
    let answer = linkctl::serve(&request, Rights::Change, &mut Shell);
    // It made none, so none is refused.
    let _ = settle();
    match answer {
        Answer::Refused(Refusal::NoSuchLink { .. }) => Ok(()),
        Answer::Refused(why) => Err(why),
        _ => Ok(()),
    }
}

/// Shows each port that carries something.
pub(super) fn each_port(mut look: impl FnMut(&Lanes)) {
    let ports = PORTS.lock().clone();
    ports.iter().for_each(|lanes| look(lanes));
}

/// The kernel's own NIC does not keep a link from being deleted.
fn vacate(name: &str, class: Class) {
    let found = with_links(|links| links.find(name).and_then(|id| links.info(id)));
    if let Some(info) = found.filter(|info| info.class == class) {
        nic::remove(info.id);
    }
}

/// Brings lanes and NICs in step with the links; returns links that can have no interface.
fn settle() -> Vec<LinkId> {
    let links: Vec<LinkInfo> = with_links(|links| links.iter().collect());
    let own = control::card_link();
    if let Some(own) = own.filter(|own| !is_plain(own.link)) {
        add_lanes(own);
    }
    PORTS.lock().retain(|lanes| {
        let is_left = links.iter().any(|link| link.id == lanes.port());
        is_left || own.is_some_and(|own| own.link == lanes.port())
    });
    let mut refused = Vec::new();
    for link in &links {
        match (link.class, link.over) {
            (Class::Vnic | Class::Vlan, Some(over)) if nic_for(link, over).is_err() => {
                refused.push(link.id);
            }
            (Class::Phys, None) => {
                follow_mtu(link);
                follow_throttling(link);
            }
            _ => {}
        }
        follow_cpus(link);
    }
    if let Some(own) = own.filter(|own| is_plain(own.link)) {
        remove_lanes(own);
    }
    each_port(Lanes::run);
    refused
}

/// The card's stacks take the MTU that its link has.
fn follow_mtu(link: &LinkInfo) {
    let of = stack::first();
    let is_so = of
        .interface(CARD)
        .is_some_and(|card| card.mtu == link.mtu.into());
    for number in (0..of.count()).filter(|_| !is_so) {
        of.with_shard(number, |stack, _| {
            let port = stack.port().copied();
            if let Some(port) = port.map(|port| inet::Port {
                mtu: link.mtu,
                ..port
            }) {
                stack.attach(port);
                of.shared.interfaces.put(Interface::of_card(&port));
            }
        });
    }
}

/// Whether the card's interrupts are kept apart by load.
fn follow_throttling(link: &LinkInfo) {
    let settings = with_links(|links| links.settings(link.id).cloned());
    let is_adaptive = settings.is_none_or(|of| of.throttling == Throttling::Adaptive);
    moderation::set_adaptive(is_adaptive);
}

/// Which CPUs take a link's frames.
fn follow_cpus(link: &LinkInfo) {
    let cpus = with_links(|links| links.settings(link.id).map(|of| of.cpus));
    let cpus = cpus.unwrap_or_default();
    match link.class {
        Class::Phys => runners::bind(cpus),
        Class::Vnic | Class::Vlan => nic::bind(link.id, cpus),
        Class::Etherstub => {}
    }
}

fn is_plain(port: LinkId) -> bool {
    let table = with_links(|links| links.table(port));
    table.is_none_or(|(_, table)| table.is_plain())
}

/// Puts lanes beside the card, one for each pair of queues, unless they are there already.
fn add_lanes(own: CardLink) {
    let there = lanes_of(own.link);
    let is_missing = |ring: &u16| there.iter().all(|lanes| lanes.ring() != Some(*ring));
    for ring in (0..stack::first().count()).filter(is_missing) {
        let lanes = Lanes::beside_card(own.link, ring, own.stream);
        PORTS.lock().extend(lanes);
    }
}

/// Takes the card's lanes away. One in which frames wait stays until the next change.
fn remove_lanes(own: CardLink) {
    for lanes in &lanes_of(own.link) {
        if lanes.remove() {
            PORTS.lock().retain(|other| !Arc::ptr_eq(other, lanes));
        }
    }
}

/// The lanes of a port.
fn lanes_of(port: LinkId) -> Vec<Arc<Lanes>> {
    let ports = PORTS.lock();
    let own = ports.iter().filter(|lanes| lanes.port() == port);
    own.cloned().collect()
}

/// Errors: those of [`nic::ensure`].
fn nic_for(link: &LinkInfo, over: LinkId) -> Result<()> {
    let mut lanes = lanes_of(over);
    if lanes.is_empty() {
        // An etherstub's: it has no card.
        lanes.extend(Lanes::of_etherstub(over));
        PORTS.lock().extend(lanes.iter().cloned());
    }
    nic::ensure(link, &lanes)
}
