//! What a machine's card leads to itself: the first network, its way out alone, or a switch of its own before that
//! ([`super::super::own`]).

use std::fs;
use std::mem;
use std::net::Ipv4Addr;

use qemu::Net;
use switch::protocol::Join;
use switch::{Lease, Network};

use super::Live;
use super::steps::sockets;
use crate::failure::Failure;
use crate::flags::OnNetwork;
use crate::networks::{Place, Store, become_member, connected, disconnected, own};
use crate::state::{Folder, Settings};

impl Live {
    /// Puts a switch of its own between the card of a machine on no network and its way out, if there is none.
    pub(super) fn lead_by_switch(&mut self, to: &Network) -> Result<(), Failure> {
        let own = match self.places.first() {
            Some(first) => first.network.clone(),
            None => own::of_user_network(&self.machine),
        };
        if own.alone.is_some() && own.overlaps(to) {
            let reason = "its own card has addresses of that network".into();
            return Err(self.not_connected(to, reason));
        }
        if !self.places.is_empty() {
            return Ok(());
        }
        let door = self.machine.way_out_socket();
        let added = self.qmp(|qmp| {
            // What QEMU did not give back before.
            qmp.remove_door()?;
            qmp.remove_wire(0)?;
            qmp.add_door(&door)
        });
        if added.is_ok() {
            self.lost_wires.retain(|wire| *wire != 0);
        }
        let led = added
            .map_err(|reason| self.not_connected(to, reason))
            .and_then(|()| {
                let joined = self.join_own(own);
                let place = joined.map_err(|why| {
                    self.not_connected(to, why.to_string().trim_end_matches('.').into())
                })?;
                self.places.push(place);
                let card = self.machine.socket_of_switch(0);
                let wired = self.qmp(|qmp| {
                    qmp.add_wire(0, &card)?;
                    qmp.close_gate()
                });
                wired.map_err(|reason| self.not_connected(to, reason))
            });
        led.inspect_err(|_| self.lead_directly())
    }

    /// Takes that switch away again, if the machine is on no network any more.
    pub(super) fn lead_directly(&mut self) {
        // The way out would take frames of a link that the machine still has for the card's own.
        let has_links = self.places.len() > 1 || !self.lost_links.is_empty();
        if self.machine.net != Net::User || has_links {
            return;
        }
        // It goes on by the switch if the gate cannot be opened.
        if self.qmp(qemu::Qmp::remove_door).is_err() {
            return;
        }
        let _ = fs::remove_file(self.machine.way_out_socket());
        if let Some(place) = self.places.pop() {
            self.unplug(&place);
        }
    }

    /// Joins a switch of its own, which calls at card and way out as soon as they are free.
    fn join_own(&self, network: Network) -> Result<Place, Failure> {
        let address = match self.places.first() {
            Some(first) => first.lease.address,
            None => own::USER_ADDRESS,
        };
        own::join(&self.machine, network, self.join_of_card(address))
    }

    /// As what the machine joins where its card's own link is.
    fn join_of_card(&self, address: Ipv4Addr) -> Join {
        Join {
            name: self.name.clone(),
            aliases: self.aliases.clone(),
            wish: Some(address),
            card: self.machine.socket_of_switch(0),
            way_out: Some(self.machine.way_out_socket()),
            others: sockets(self.places.get(1..).unwrap_or_default()),
        }
    }

    /// Leaves the first network: the card keeps its addresses there, and leads to the machine's way out only.
    pub(super) fn leave_first(&mut self, network: &str) -> Result<(), Failure> {
        let own = self.join_own(own::after(&self.places[0]))?;
        let first = mem::replace(&mut self.places[0], own);
        first.kept.leave();
        Folder::of(&self.name).change_own(|settings| Settings {
            arguments: disconnected(&settings, network).unwrap_or(settings.arguments),
            network: None,
            address: None,
            ..settings
        })
    }

    /// Whether this is the first network, which the machine has left.
    pub(super) fn has_left(&self, network: &Network) -> bool {
        let first = self.places.first().map(|place| &place.network);
        // One of that name may have been made anew since.
        first
            .filter(|first| first.alone.is_some())
            .is_some_and(|first| {
                let was = Network {
                    alone: None,
                    prefix6: network.prefix6,
                    ..first.clone()
                };
                was == *network
            })
    }

    /// Comes back to it, with the address that the card has kept.
    pub(super) fn come_back(&mut self, on: &OnNetwork, network: Network) -> Result<(), Failure> {
        let address = self.places[0].lease.address;
        if on.ip.is_some_and(|wish| wish != address) {
            let reason = format!("its card keeps the address {address} until it starts again");
            return Err(self.not_connected(&network, reason));
        }
        let join = Join {
            aliases: [&self.aliases[..], &on.aliases].concat(),
            ..self.join_of_card(address)
        };
        let (lease, kept) = become_member(&Store::of_user()?, &network, join)?;
        let place = Place::of_card(network, lease, kept);
        let own = mem::replace(&mut self.places[0], place);
        own.kept.leave();
        let Lease { address, .. } = lease;
        Folder::of(&self.name).change_own(|settings| Settings {
            arguments: connected(&settings, on).unwrap_or(settings.arguments),
            network: Some(on.name.clone()),
            address: Some(address),
            ..settings
        })
    }
}
