//! Who is behind one port, as all its lanes see it: an immutable table.
//!
//! The control plane makes a new table for each change and raises the port's generation;
//! a lane compares two numbers for each batch and takes the new table when they differ
//! ([`crate::lane::Lane::is_stale`]). So the way of a frame takes no lock, and a batch
//! sees one state of the world.
//!
//! Invariant: every client that has a hardware filter also has its entry here, so frames
//! find their client whichever ring they come by.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

use base::Instant;
use wire::MacAddr;

use crate::bandwidth::Limit;
use crate::flow::{FlowId, Priority, Rule};
use crate::headers::{Header, Packet};
use crate::lane::direct;
use crate::open::Sap;
use crate::promisc::Promiscuity;
use crate::protect::Guard;
use crate::vlan::{Tag, VlanId};

/// A link: an index with a generation, so that a stale id finds nothing.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LinkId {
    pub(crate) index: u16,
    pub(crate) generation: u32,
}

impl LinkId {
    /// Its place in [`crate::Links::iter`]: links are listed by it, and while a link
    /// exists no other one has it.
    pub const fn place(self) -> u16 {
        self.index
    }
}

/// A stream, likewise.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct StreamId {
    pub(crate) index: u16,
    pub(crate) generation: u32,
}

/// Raised with each new table of a port.
#[derive(Debug, Default)]
pub struct Generation(AtomicU64);

impl Generation {
    /// Whether `table` is not the newest.
    #[inline]
    pub fn is_newer_than(&self, table: &Table) -> bool {
        !self.is(table.generation)
    }

    /// Whether the newest table is that of this number.
    #[inline]
    pub(crate) fn is(&self, generation: u64) -> bool {
        // Relaxed: the table itself is fetched under the control plane's lock.
        self.0.load(Ordering::Relaxed) == generation
    }

    pub(crate) fn raise(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed) + 1
    }
}

/// A stream as frames meet it.
#[derive(Clone, Debug)]
pub(crate) struct Listener {
    pub id: StreamId,
    /// It takes every protocol: the link is its own, or it asked for that.
    pub takes_all: bool,
    pub saps: Vec<Sap>,
    pub promiscuity: Promiscuity,
}

impl Listener {
    pub fn takes(&self, ether_type: u16) -> bool {
        self.takes_all || self.saps.contains(&ether_type)
    }
}

/// A flow of a client: which rule, and which queue its frames wait in.
#[derive(Clone, Debug)]
pub(crate) struct FlowEntry {
    pub rule: Rule,
    pub queue: u16,
}

/// What waits together in a lane: a client's traffic, or one flow of it.
#[derive(Clone, Debug)]
pub(crate) struct QueueSpec {
    /// The flow, unless the queue is for what no flow of the client matches.
    pub flow: Option<FlowId>,
    pub priority: Priority,
    /// Of the client and of the flow, received.
    pub rx: [Option<Arc<Limit>>; 2],
    /// Of the client and of the flow, sent.
    pub tx: [Option<Arc<Limit>>; 2],
}

impl QueueSpec {
    pub fn limits(&self, is_sent: bool) -> &[Option<Arc<Limit>>; 2] {
        if is_sent { &self.tx } else { &self.rx }
    }

    pub fn is_limited(&self, is_sent: bool) -> bool {
        self.limits(is_sent).iter().any(Option::is_some)
    }

    /// Whether a limit of zero lets nothing pass.
    pub fn is_shut(&self, is_sent: bool) -> bool {
        let mut limits = self.limits(is_sent).iter().flatten();
        limits.any(|limit| limit.bandwidth().bps() == 0)
    }

    /// Takes tokens from all limits or from none; fails with when to come back.
    pub fn take(&self, is_sent: bool, now: Instant, bytes: usize) -> Result<(), Instant> {
        let [first, second] = self.limits(is_sent);
        if let Some(first) = first {
            first.take(now, bytes)?;
        }
        if let Some(second) = second
            && let Err(later) = second.take(now, bytes)
        {
            if let Some(first) = first {
                first.give_back(bytes);
            }
            return Err(later);
        }
        Ok(())
    }

    /// Gives the tokens of a frame back that did not go after all.
    pub fn give_back(&self, is_sent: bool, bytes: usize) {
        for limit in self.limits(is_sent).iter().flatten() {
            limit.give_back(bytes);
        }
    }
}

/// A client of a port: a VNIC, a VLAN, or the port's own link.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    pub link: LinkId,
    pub mac: MacAddr,
    pub vid: Option<VlanId>,
    /// The port's own link, whose promiscuous streams see all VLANs.
    pub is_primary: bool,
    pub mtu: u16,
    pub guard: Option<Guard>,
    /// Whether `guard` wants to hear what the client is given.
    pub learns: bool,
    pub is_filtered: bool,
    pub multicasts: Vec<MacAddr>,
    pub listeners: Vec<Listener>,
    /// The most specific rule first.
    pub flows: Vec<FlowEntry>,
    /// For what no flow matches.
    pub queue: u16,
}

impl Client {
    /// The queue of a packet.
    pub fn queue_of(&self, packet: impl FnOnce() -> Option<Packet>, is_sent: bool) -> u16 {
        if self.flows.is_empty() {
            return self.queue;
        }
        let Some(packet) = packet() else {
            return self.queue;
        };
        let flow = self
            .flows
            .iter()
            .find(|flow| flow.rule.matches(&packet, is_sent));
        flow.map_or(self.queue, |flow| flow.queue)
    }

    /// Whether the client would get a frame from the wire.
    pub fn receives(&self, header: &Header) -> bool {
        self.is_in(header.tag)
            && (header.dst == self.mac
                || header.dst == MacAddr::BROADCAST
                || self.multicasts.contains(&header.dst))
    }

    /// Whether the client's VLAN is that of a frame.
    pub fn is_in(&self, tag: Tag) -> bool {
        vid_of(tag) == Some(self.vid)
    }
}

/// The VLAN of a frame, if any; `None` for the reserved one.
pub(crate) fn vid_of(tag: Tag) -> Option<Option<VlanId>> {
    match tag {
        Tag::Untagged => Some(None),
        Tag::Vlan(vid) => Some(Some(vid)),
        Tag::Reserved => None,
    }
}

/// An address in a VLAN as one number.
fn key(mac: MacAddr, vid: Option<VlanId>) -> u64 {
    let [a, b, c, d, e, f] = mac.0;
    let vid = vid.map_or(0, VlanId::get);
    u64::from_be_bytes([0, 0, a, b, c, d, e, f]) | u64::from(vid) << 48
}

/// The clients of one port.
#[derive(Debug, Default)]
pub struct Table {
    pub(crate) generation: u64,
    /// Whether there is a card; an etherstub has none.
    pub(crate) has_wire: bool,
    /// In the order of their links.
    pub(crate) clients: Vec<Client>,
    pub(crate) queues: Vec<QueueSpec>,
    /// Client by address, sorted.
    unicast: Vec<(u64, u16)>,
    /// Promiscuous streams: client and place in its list.
    pub(crate) taps: Vec<(u16, u16)>,
    /// Whether a promiscuous stream may see frames to one station.
    pub(crate) is_watched: bool,
    /// By group: the only client whose address its filters have, if no flow or tap applies.
    alone: Vec<Option<u16>>,
    /// By client: whether its unicast frames pass the lanes by ([`crate::lane::direct`]).
    direct: Vec<bool>,
    /// Of each client that its frames reach so: address, place and only stream.
    receivers: Vec<(u64, usize, StreamId)>,
    /// Of each client, whatever its VLAN, by place.
    pub(crate) addresses: direct::Addresses,
}

/// So many are looked at in turn, which is cheaper than to halve them.
const FEW: usize = 4;

impl Table {
    /// `groups` has, for each group of the card, the clients whose addresses are there;
    /// `None` for a promiscuous one.
    pub(crate) fn new(
        generation: u64,
        has_wire: bool,
        mut clients: Vec<Client>,
        queues: Vec<QueueSpec>,
        groups: &[Option<Vec<LinkId>>],
    ) -> Self {
        clients.sort_unstable_by_key(|client| client.link);
        let mut unicast: Vec<_> = (0..)
            .zip(&clients)
            .map(|(slot, client)| (key(client.mac, client.vid), slot))
            .collect();
        unicast.sort_unstable();
        let taps = taps_of(&clients);
        let mut listeners = clients.iter().flat_map(|client| &client.listeners);
        let is_watched = listeners.any(|listener| listener.promiscuity.sees_unicast());
        let may_pass = |client| !is_watched && direct::may_pass(client, &queues);
        let direct: Vec<bool> = clients.iter().map(may_pass).collect();
        let receivers = clients.iter().enumerate().zip(&direct);
        let receivers =
            receivers
                .filter(|(_, is_direct)| **is_direct)
                .filter_map(|((slot, client), _)| {
                    let listener = client.listeners.first()?;
                    Some((direct::as_receiver(client.mac), slot, listener.id))
                });
        let receivers = receivers.collect();
        let addresses = direct::Addresses::new(&clients);
        let alone = groups
            .iter()
            .map(|group| only_client(group.as_deref()?, &clients, taps.is_empty()))
            .collect();
        Self {
            generation,
            has_wire,
            clients,
            queues,
            unicast,
            taps,
            is_watched,
            alone,
            direct,
            receivers,
            addresses,
        }
    }

    /// Whether no frame needs a look: the port's own link is alone and lets everything pass.
    /// A shell may then lead frames past the lanes.
    pub fn is_plain(&self) -> bool {
        let [client] = &self.clients[..] else {
            return false;
        };
        let is_limited = |queue: &QueueSpec| queue.is_limited(true) || queue.is_limited(false);
        client.is_primary
            && client.guard.is_none()
            && client.flows.is_empty()
            && !self.queues.iter().any(is_limited)
    }

    /// The client of a unicast address.
    pub(crate) fn find(&self, mac: MacAddr, vid: Option<VlanId>) -> Option<usize> {
        let wanted = key(mac, vid);
        if self.unicast.len() <= FEW {
            let mut all = self.unicast.iter();
            return all
                .find(|(key, _)| *key == wanted)
                .map(|(_, slot)| usize::from(*slot));
        }
        let at = self.unicast.binary_search_by_key(&wanted, |(key, _)| *key);
        at.ok().map(|at| usize::from(self.unicast[at].1))
    }

    /// The client whose frames a group's rings carry.
    #[inline]
    pub(crate) fn alone_in(&self, group: u16) -> Option<usize> {
        let slot = *self.alone.get(usize::from(group))?;
        slot.map(usize::from)
    }

    /// Whether unicast frames of a client pass the lanes by.
    #[inline]
    pub(crate) fn is_direct(&self, slot: usize) -> bool {
        self.direct.get(slot) == Some(&true)
    }

    /// Place and stream of the client whose frames pass the lanes by to this address.
    #[inline]
    pub(crate) fn direct_to(&self, receiver: u64) -> Option<(usize, StreamId)> {
        let mut all = self.receivers.iter();
        let found = all.find(|(address, ..)| *address == receiver)?;
        Some((found.1, found.2))
    }

    /// The address of a link: what its stack puts into headers. A stack looks at it
    /// whenever its lane adopts a table, and rebuilds its headers if it has changed.
    pub fn address_of(&self, link: LinkId) -> Option<MacAddr> {
        Some(self.clients[self.slot_of(link)?].mac)
    }

    #[inline]
    pub(crate) fn slot_of(&self, link: LinkId) -> Option<usize> {
        if self.clients.len() <= FEW {
            return self.clients.iter().position(|client| client.link == link);
        }
        let found = self
            .clients
            .binary_search_by_key(&link, |client| client.link);
        found.ok()
    }
}

fn taps_of(clients: &[Client]) -> Vec<(u16, u16)> {
    let mut taps = Vec::new();
    for (slot, client) in (0..).zip(clients) {
        for (index, listener) in (0..).zip(&client.listeners) {
            if listener.promiscuity.is_promiscuous() {
                taps.push((slot, index));
            }
        }
    }
    taps
}

/// The group's client, if it holds exactly one address and no flow or tap applies.
fn only_client(links: &[LinkId], clients: &[Client], is_untapped: bool) -> Option<u16> {
    let &[link] = links else {
        return None;
    };
    let slot = clients.iter().position(|client| client.link == link)?;
    let client = &clients[slot];
    let is_plain = client.flows.is_empty() && client.vid.is_none() && is_untapped;
    is_plain.then_some(slot as u16)
}
