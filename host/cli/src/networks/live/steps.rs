//! The steps by which a machine gets a link on one more network, and loses it.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use agent::{Request, Strings, Task, block};
use qemu::Qmp;
use switch::Network;
use switch::protocol::Join;

use super::Live;
use crate::agent::probe;
use crate::failure::Failure;
use crate::flags::OnNetwork;
use crate::networks::{NETWORKS_MAX, Place, Store, become_member, link_name, records};

/// How long the machine may take to make or remove a link.
const PATIENCE: Duration = Duration::from_secs(30);
/// What the kernel says of a link that it has not made begins so.
const OF_FIRST_RECORD: &str = "line 1: ";
/// What is said of a machine that stands, or ends right now.
pub(super) const NO_ANSWER: &str = "it does not answer";
/// Names of links that are tried: programs may have links of those names.
const NAMES_MAX: usize = 2 * NETWORKS_MAX;

impl Live {
    /// A place on that network, where the machine has no wire and no link yet.
    pub(super) fn join(&self, on: &OnNetwork, network: Network) -> Result<Place, Failure> {
        let store = Store::of_user()?;
        let is_free = |wire: &u8| {
            let mut places = self.places.iter();
            places.all(|place| place.wire != *wire) && !self.lost_wires.contains(wire)
        };
        // There are fewer than NETWORKS_MAX.
        let wire = (1..u8::MAX).find(is_free).unwrap_or(u8::MAX);
        let join = Join {
            name: self.name.clone(),
            aliases: [&self.aliases[..], &on.aliases].concat(),
            wish: on.ip,
            card: self.machine.socket_of_switch(wire),
            way_out: None,
            others: Vec::new(),
        };
        let (lease, kept) = become_member(&store, &network, join)?;
        Ok(Place {
            network,
            lease,
            wire,
            link: String::new(),
            kept,
        })
    }

    /// Makes the wire and the link.
    pub(super) fn plug(&mut self, place: &mut Place) -> Result<(), Failure> {
        let path = self.machine.socket_of_switch(place.wire);
        let added = self.qmp(|qmp| qmp.add_wire(place.wire, &path));
        added.map_err(|reason| self.not_connected(&place.network, reason))?;
        let mut reason = String::new();
        for name in (1..=NAMES_MAX).map(link_name) {
            if self.places.iter().any(|other| other.link == name) {
                continue;
            }
            match self.add_link(&name, place) {
                Ok(()) => {
                    self.lost_links.retain(|lost| *lost != name);
                    place.link = name;
                    return Ok(());
                }
                // A program has made a link of that name.
                Err(why) if why.starts_with(OF_FIRST_RECORD) => reason = why,
                Err(why) => {
                    self.drop_link(&name);
                    return Err(self.not_connected(&place.network, why));
                }
            }
        }
        Err(self.not_connected(&place.network, reason))
    }

    pub(super) fn not_connected(&self, network: &Network, reason: String) -> Failure {
        let of_record = reason.strip_prefix("line ");
        let of_record = of_record.and_then(|rest| rest.split_once(": "));
        let reason = of_record.map_or(reason.clone(), |(_, why)| why.into());
        Failure::LinkNotChanged {
            machine: self.name.clone(),
            what: format!("connected to {}", network.name),
            reason,
            way: "Stop it, connect it, and start it again with `sietch restart`.",
        }
    }

    /// Takes the wire away, and leaves the network.
    pub(super) fn unplug(&mut self, place: &Place) {
        // While the switch is there, so that no frame meets a stream without one.
        if self.qmp(|qmp| qmp.remove_wire(place.wire)).is_err() {
            self.lost_wires.push(place.wire);
        }
        place.kept.leave();
        let _ = fs::remove_file(self.machine.socket_of_switch(place.wire));
    }

    /// Removes a link, now or once the machine answers.
    pub(super) fn drop_link(&mut self, name: &str) {
        if self.remove_link(name).is_err() && !self.lost_links.iter().any(|lost| lost == name) {
            self.lost_links.push(name.into());
        }
    }

    /// Removes links that the machine has not given back, and leaves the networks that it was to leave with them: it may
    /// have removed them since, or does so now.
    pub(super) fn settle(&mut self) {
        for link in self.lost_links.clone() {
            match self.remove_link(&link) {
                Ok(()) => self.lost_links.retain(|lost| *lost != link),
                Err(reason) if reason == NO_ANSWER => return,
                // The next one may not be refused.
                Err(_) => continue,
            }
            if let Some(at) = self.places.iter().position(|place| place.link == link) {
                // Who asked for it was told that it is not so, and asks again if it is to be written down.
                let _ = self.leave(at);
            }
        }
    }

    /// The first network's switch, which the machine asks for names, asks those of the others.
    pub(super) fn tell_others(&self) {
        let Some((first, further)) = self.places.split_first() else {
            return;
        };
        first.kept.set_others(sockets(further));
    }

    /// Errors: words.
    pub(super) fn qmp(&self, act: impl FnOnce(&mut Qmp) -> io::Result<()>) -> Result<(), String> {
        let qmp = Qmp::connect(&self.machine.qmp_socket());
        let mut qmp = qmp.map_err(|_| NO_ANSWER)?;
        act(&mut qmp).map_err(|error| error.to_string())
    }

    fn add_link(&self, name: &str, place: &Place) -> Result<(), String> {
        let records = records(name, &place.network, &place.lease);
        self.ask_kernel(Task::AddLinks, &records)
    }

    /// Errors: words.
    pub(super) fn remove_link(&self, name: &str) -> Result<(), String> {
        self.ask_kernel(Task::RemoveLinks, &[name.into()])
    }

    /// Errors: words.
    fn ask_kernel(&self, task: Task, lines: &[String]) -> Result<(), String> {
        let lines = block(lines.iter().map(String::as_bytes)).unwrap_or_default();
        let request = Request {
            task,
            arguments: Strings::of_block(&lines).unwrap_or_default(),
            ..Request::default()
        };
        let begin = Instant::now();
        match probe::ask_for(&self.name, &request, PATIENCE) {
            Some(answer) if answer.status == 0 => Ok(()),
            Some(answer) if begin.elapsed() < PATIENCE => {
                Err(answer.output.trim_end().trim_end_matches('.').into())
            }
            Some(_) | None => Err(NO_ANSWER.into()),
        }
    }
}

/// The switches of these networks.
pub(super) fn sockets(places: &[Place]) -> Vec<PathBuf> {
    let sockets = places.iter().map(|place| place.kept.socket().into());
    sockets.collect()
}
