//! Stations: VNICs and VLANs as interfaces, each with a stack of its own.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use base::Instant;
use inet::Stack;
use link::links::LinkInfo;
use link::{LinkId, StreamId};
use mach::sync::Spin;

use super::control::{self, with_links};
use super::inbox::Inbox;
use super::lane_port::LanePort;
use super::lanes::Lanes;
use super::{wake, wire};
use crate::device::poll::{BATCH_FRAMES_MAX, announce, facts_of, receive_batch};
use crate::stack;
use crate::stack::env::{Attachment, Link};
use crate::stack::interface::CARD;
use crate::stack::interface::{FIRST_STATION, Interface, STATIONS_MAX};
use crate::stack::shard::Shard;
use vfs::socket::InterfaceName;

struct Station {
    link: LinkId,
    /// Its hold on the link.
    stream: StreamId,
    name: InterfaceName,
    /// Of its port; it sends by the first, so that its frames keep their order.
    lanes: Vec<Arc<Lanes>>,
    inbox: Arc<Inbox>,
    /// What its port is now.
    facts: inet::Port,
    shard: Box<Shard>,
}

static STATIONS: [Spin<Option<Station>>; STATIONS_MAX] = [const { Spin::new(None) }; STATIONS_MAX];

fn number_of(slot: usize) -> u32 {
    FIRST_STATION + slot as u32
}

/// Calls `work` with a station's stack; `None` if there is no such station.
pub(crate) fn with<R>(number: u32, work: impl FnOnce(&mut Stack, &mut Link) -> R) -> Option<R> {
    let slot = number.checked_sub(FIRST_STATION)? as usize;
    let mut guard = STATIONS.get(slot)?.lock();
    let (stack, link) = guard.as_mut()?.shard.enter();
    let done = work(stack, link);
    wake::at(stack.next_deadline().unwrap_or(Instant::NEVER));
    Some(done)
}

/// Frames for an interface that its inbox had no room for.
pub(crate) fn dropped(number: u32) -> u64 {
    if number == CARD {
        return wire::lost();
    }
    let slot = number.checked_sub(FIRST_STATION);
    let place = slot.and_then(|slot| STATIONS.get(slot as usize));
    let dropped = place.and_then(|place| Some(place.lock().as_ref()?.inbox.dropped()));
    dropped.unwrap_or(0)
}

/// Sees to it that a link has its station, as the link is now. Without a free number, or with
/// too long a name for an interface, it has none.
pub(super) fn ensure(link: &LinkInfo, lanes: &[Arc<Lanes>]) {
    let place = |slot: &Spin<Option<Station>>, of: Option<LinkId>| {
        slot.lock().as_ref().map(|station| station.link) == of
    };
    let find = |of| STATIONS.iter().position(|slot| place(slot, of));
    if let Some(slot) = find(Some(link.id)) {
        follow(slot, link);
    } else if let Some(slot) = find(None) {
        let made = Station::new(number_of(slot), link, lanes);
        *STATIONS[slot].lock() = made;
    }
}

/// A station takes its link's address and MTU.
fn follow(slot: usize, link: &LinkInfo) {
    let mut guard = STATIONS[slot].lock();
    let Some(station) = guard.as_mut() else {
        return;
    };
    let facts = inet::Port {
        mac: link.mac,
        mtu: link.mtu,
        ..station.facts
    };
    if facts != station.facts {
        station.facts = facts;
        station.shard.stack.attach(facts);
        let interface = Interface::ethernet(number_of(slot), station.name, &facts);
        stack::first().shared.interfaces.put(interface);
    }
}

/// Takes a link's station away, with its sockets' connections.
pub(super) fn remove(link: LinkId) {
    for (slot, place) in STATIONS.iter().enumerate() {
        let mut guard = place.lock();
        let Some(station) = guard.take_if(|station| station.link == link) else {
            continue;
        };
        drop(guard);
        stack::first().shared.interfaces.remove(number_of(slot));
        let lanes = station.lanes.iter();
        lanes.for_each(|lanes| lanes.lead_no_more_to(station.stream));
        // The link may be gone already.
        let _ = with_links(|links| links.close(station.stream));
    }
}

/// Runs all stations; says when the next one has something to do.
pub(super) fn run_all() -> Instant {
    let run = |place: &Spin<Option<Station>>| {
        let mut guard = place.lock();
        let (stack, link) = guard.as_mut()?.shard.enter();
        let has_more = receive_batch(stack, link) == BATCH_FRAMES_MAX;
        let next = stack.expire(link);
        announce(link);
        match has_more {
            true => Some(inet::Env::now(link)),
            false => next,
        }
    };
    let next = STATIONS.iter().filter_map(run).min();
    next.unwrap_or(Instant::NEVER)
}

impl Station {
    fn new(number: u32, link: &LinkInfo, lanes: &[Arc<Lanes>]) -> Option<Self> {
        let first = lanes.first()?;
        let name = InterfaceName::new(&link.name)?;
        let stream = with_links(|links| control::open(links, link.id)).ok()?;
        let inbox = Arc::<Inbox>::default();
        let each = lanes.iter();
        each.for_each(|lanes| lanes.lead_to(stream, inbox.clone()));
        let port = LanePort::of_station(link, first.clone(), inbox.clone());
        let facts = facts_of(&port);
        let mut shard = Shard::boxed(stack::first(), number, 0).ok()?;
        shard.stack.attach(facts);
        shard.link.attachment = Attachment::Own(Box::new(port));
        let interface = Interface::ethernet(number, name, &facts);
        stack::first().shared.interfaces.put(interface);
        Some(Self {
            link: link.id,
            stream,
            name,
            lanes: lanes.to_vec(),
            inbox,
            facts,
            shard,
        })
    }
}
