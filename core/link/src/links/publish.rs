//! Makes the table that lanes go by, and keeps the card in step with it.

use alloc::sync::Arc;
use alloc::vec::Vec;

use base::Instant;
use hal::{MulticastFilter, NicError, VlanFilter};
use mbuf::Chain;
use wire::MacAddr;

use super::{Class, Flow, Link, LinkError, Links};
use crate::bandwidth::Limit;
use crate::headers::{Header, Packet};
use crate::open::Mode;
use crate::promisc::Promiscuity;
use crate::protect::{Guard, Protection};
use crate::table::{Client, FlowEntry, LinkId, Listener, QueueSpec, StreamId, Table};
use crate::vlan::VlanId;

impl Links {
    /// A new table for the lanes of `port`.
    pub(super) fn publish(&mut self, port: LinkId) {
        let mut queues = Vec::new();
        let clients: Vec<Client> = self
            .clients_of(port)
            .filter_map(|id| self.client(id, &mut queues))
            .collect();
        let groups = self.groups_of(port);
        let Some(state) = self.link_mut(port).and_then(|link| link.port.as_mut()) else {
            return;
        };
        let has_wire = state.card.is_some();
        let generation = state.generation.raise();
        state.table = Arc::new(Table::new(generation, has_wire, clients, queues, &groups));
    }

    /// A client as lanes see it; its queues go behind those that are there. An etherstub
    /// is no client of itself.
    fn client(&self, id: LinkId, queues: &mut Vec<QueueSpec>) -> Option<Client> {
        let link = self.link(id)?;
        if link.class == Class::Etherstub {
            return None;
        }
        let mut add = |spec| {
            queues.push(spec);
            (queues.len() - 1) as u16
        };
        let queue = add(queue_of(link, None));
        let mut flows: Vec<FlowEntry> = link
            .flows
            .iter()
            .map(|flow| FlowEntry {
                rule: flow.rule,
                queue: add(queue_of(link, Some(flow))),
            })
            .collect();
        // Stable: of equal rules the older one stays first.
        flows.sort_by_key(|flow| core::cmp::Reverse(flow.rule.rank()));
        let is_primary = link.over == id;
        Some(Client {
            link: id,
            mac: link.mac,
            vid: link.vid,
            is_primary,
            mtu: self.mtu_of(id),
            guard: guard_of(link),
            learns: link.settings.protection.contains(Protection::IP_NOSPOOF),
            is_filtered: link.settings.promisc_filtered && !is_primary,
            multicasts: self.multicasts_of(id),
            listeners: self.listeners_of(id),
            flows,
            queue,
        })
    }

    fn listeners_of(&self, link: LinkId) -> Vec<Listener> {
        let streams = self.streams.iter().filter(|(.., s)| s.link == link);
        streams
            .map(|(index, generation, stream)| Listener {
                id: StreamId { index, generation },
                takes_all: stream.takes_all || stream.claim.mode() == Mode::Exclusive,
                saps: stream.claim.saps().to_vec(),
                promiscuity: stream.promiscuity,
            })
            .collect()
    }

    pub(super) fn multicasts_of(&self, link: LinkId) -> Vec<MacAddr> {
        let streams = self.streams.iter().filter(|(.., s)| s.link == link);
        let all = streams.flat_map(|(.., stream)| stream.multicasts.iter().copied());
        let mut all: Vec<_> = all.collect();
        all.sort_unstable_by_key(|mac| mac.0);
        all.dedup();
        all
    }

    /// For each group of the card, whose addresses are there; `None` if it takes others too.
    fn groups_of(&self, port: LinkId) -> Vec<Option<Vec<LinkId>>> {
        let groups = self.groups(port).unwrap_or_default().into_iter();
        let mut groups: Vec<_> = groups.map(|group| Some(group.clients)).collect();
        let state = self.link(port).and_then(|link| link.port.as_ref());
        let card = state.and_then(|port| port.card.as_ref());
        if card.is_some_and(|card| card.placement.is_promiscuous())
            && let Some(default) = groups.first_mut()
        {
            *default = None;
        }
        groups
    }

    /// Tells the card which multicasts the port's clients take part in. A card that cannot
    /// filter takes them all.
    pub(super) fn sync_multicasts(&mut self, port: LinkId) -> Result<(), LinkError> {
        let clients: Vec<LinkId> = self.clients_of(port).collect();
        let mut wanted: Vec<[u8; 6]> = clients
            .into_iter()
            .flat_map(|id| self.multicasts_of(id))
            .map(|mac| mac.0)
            .collect();
        wanted.sort_unstable();
        wanted.dedup();
        let Some(card) = self.card_mut(port) else {
            return Ok(());
        };
        if wanted == card.multicasts {
            return Ok(());
        }
        match card.nic.set_multicast(MulticastFilter::Only(&wanted)) {
            Ok(()) | Err(NicError::Unsupported) => {
                card.multicasts = wanted;
                Ok(())
            }
            Err(error) => Err(LinkError::Nic(error)),
        }
    }

    /// Tells the card which VLANs the port's clients are in; all, while none is in any. A card
    /// that cannot filter takes them all.
    pub(super) fn sync_vlans(&mut self, port: LinkId) -> Result<(), LinkError> {
        let clients = self.clients_of(port).filter_map(|id| self.link(id)?.vid);
        let mut wanted: Vec<u16> = clients.map(VlanId::get).collect();
        wanted.sort_unstable();
        wanted.dedup();
        let Some(card) = self.card_mut(port) else {
            return Ok(());
        };
        if wanted == card.vlans {
            return Ok(());
        }
        let filter = match wanted.is_empty() {
            true => VlanFilter::All,
            false => VlanFilter::Only(&wanted),
        };
        match card.nic.set_vlans(filter) {
            Ok(()) | Err(NicError::Unsupported) => {
                card.vlans = wanted;
                Ok(())
            }
            Err(error) => Err(LinkError::Nic(error)),
        }
    }

    /// Makes the card promiscuous while a stream wants everything on the wire.
    pub(super) fn sync_listening(&mut self, port: LinkId) -> Result<(), LinkError> {
        let wants_wire = |id: LinkId| {
            let is_filtered = self
                .link(id)
                .is_some_and(|link| link.settings.promisc_filtered && link.over != id);
            !is_filtered
                && self.streams.iter().any(|(.., stream)| {
                    stream.link == id && stream.promiscuity.contains(Promiscuity::PHYS)
                })
        };
        let wanted = self.clients_of(port).any(wants_wire);
        let Some(card) = self.card_mut(port) else {
            return Ok(());
        };
        if wanted == card.is_listening {
            return Ok(());
        }
        if wanted {
            let told = card.placement.listen(&mut *card.nic);
            told.map_err(LinkError::Nic)?;
        } else {
            card.placement.unlisten(&mut *card.nic);
        }
        card.is_listening = wanted;
        Ok(())
    }

    /// A lane shows a frame from which a client's addresses may be learned.
    pub fn learn(&mut self, now: Instant, id: LinkId, is_sent: bool, frame: &Chain) {
        let packet = Header::of(frame).and_then(|header| Packet::of(&header, frame));
        let (Some(packet), Some(link)) = (packet, self.link_mut(id)) else {
            return;
        };
        let (methods, mac, over) = (link.settings.methods(), link.mac, link.over);
        let changed = match is_sent {
            true => link.learner.sent(now, methods, &packet, frame),
            false => link.learner.received(now, methods, mac, &packet, frame),
        };
        if changed {
            self.publish(over);
        }
    }

    /// Withdraws learned addresses whose time has come; returns when to come back.
    pub fn expire(&mut self, now: Instant) -> Instant {
        let ids = self.links.iter();
        let ids: Vec<LinkId> = ids
            .map(|(index, generation, _)| LinkId { index, generation })
            .collect();
        let mut next = Instant::NEVER;
        for id in ids {
            let Some(link) = self.link_mut(id) else {
                continue;
            };
            let (changed, over) = (link.learner.expire(now), link.over);
            next = next.min(link.learner.next_expiry());
            if changed {
                self.publish(over);
            }
        }
        next
    }
}

fn guard_of(link: &Link) -> Option<Guard> {
    let settings = &link.settings;
    (!settings.protection.is_empty()).then(|| Guard {
        mac: link.mac,
        secondary: settings.secondary_macs.clone(),
        vid: link.vid,
        on: settings.protection,
        allowed: settings.allowed_ips.clone(),
        learned: link.learner.addresses(),
        methods: settings.methods(),
        client_ids: settings
            .allowed_cids
            .iter()
            .map(|(_, id)| id.clone())
            .collect(),
        all_client_ids: settings.allow_all_cids,
    })
}

/// The queue of a flow, or of what no flow of the link matches.
fn queue_of(link: &Link, flow: Option<&Flow>) -> QueueSpec {
    let of = |limits: Option<&[Arc<Limit>; 2]>, at: usize| limits.map(|pair| pair[at].clone());
    let own = link.limits.as_ref();
    let limits = flow.and_then(|flow| flow.limits.as_ref());
    QueueSpec {
        flow: flow.map(|flow| flow.id),
        priority: flow.map_or(link.settings.priority, |flow| flow.props.priority),
        rx: [of(own, 0), of(limits, 0)],
        tx: [of(own, 1), of(limits, 1)],
    }
}
