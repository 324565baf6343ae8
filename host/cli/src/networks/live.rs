//! The session's end of `network connect` and `disconnect`: a machine's networks while it runs.
//!
//! A network costs no card: the machine's card leads to a hub of QEMU's, where each network's switch has a wire. So a machine
//! is put on one more in four steps, each of which has an end and is taken back if a later one fails:
//!
//! 1. the session becomes a member, and the switch begins to call at the wire's socket;
//! 2. QEMU makes the wire, and a port of the hub for it;
//! 3. the machine's kernel makes a link with the station and the addresses that the switch gave (`kernel/agent`);
//! 4. the machine's line has the network, so that it is there after `sietch restart`.
//!
//! It leaves by the same steps backwards ([`steps`]). The session takes them one after the other, whatever becomes of who asked; if
//! it is killed itself, its machine ends with it.
//!
//! The first network leads out, too. A machine that leaves it, or that was on none, has a switch of its own there ([`first`]).

mod first;
mod steps;

use std::fs::{self, Permissions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::thread;
use std::time::Duration;

use qemu::{Machine, Net, Origin, Stdio};

use super::request::{LINE_BYTES_MAX, Reply, Wish, socket};
use super::{NETWORKS_MAX, Place, Store, connected, disconnected};
use crate::failure::Failure;
use crate::flags::{OnNetwork, RunFlags};
use crate::line;
use crate::state::{Folder, Settings};

/// How long who asks may take to say what.
const ASKING: Duration = Duration::from_secs(10);

/// A machine's places, which its session keeps.
pub(crate) struct Live {
    name: String,
    machine: Machine,
    /// Its further names on each network.
    aliases: Vec<String>,
    /// The first is where its card leads itself; none if that is to its way out alone.
    places: Vec<Place>,
    /// Wires that QEMU has not given back.
    lost_wires: Vec<u8>,
    /// Links that the machine has not, or of which it has not said so.
    lost_links: Vec<String>,
}

impl Live {
    /// Listens for wishes as long as this process lives, if the machine has an agent and a card that can be led elsewhere, also
    /// at its next start. One that cannot be listened for keeps its networks until it ends.
    pub(crate) fn serve(places: Vec<Place>, machine: &Machine, name: &str, flags: &RunFlags) {
        let has_hub = matches!(machine.net, Net::User | Net::Switched(_));
        if !has_hub || machine.stdio != Stdio::Ports || machine.origin != Origin::Boot {
            return;
        }
        let Ok(listener) = listen(&socket(&machine.state)) else {
            return;
        };
        let mut live = Self {
            name: name.into(),
            machine: machine.clone(),
            aliases: flags.network.aliases.clone(),
            places,
            lost_wires: Vec::new(),
            lost_links: Vec::new(),
        };
        thread::spawn(move || {
            // One after the other.
            for asker in listener.incoming().flatten() {
                live.answer(asker);
            }
        });
    }

    fn answer(&mut self, mut asker: UnixStream) {
        let Some(wish) = read_wish(&asker) else {
            return;
        };
        let done = match wish {
            Wish::Connect(on) => match on.parse() {
                Ok(on) => self.connect(&on),
                Err(sentence) => Err(Failure::OfSession(sentence)),
            },
            Wish::Disconnect { network, by_force } => self.disconnect(&network, by_force),
        };
        let reply = match done {
            Ok(()) => Reply::Done,
            Err(failure) => Reply::Refused(failure.to_string()),
        };
        let mut line = serde_json::to_vec(&reply).unwrap_or_default();
        line.push(b'\n');
        // Who has gone hears it not, and it is so all the same.
        let _ = asker.write_all(&line);
    }

    fn connect(&mut self, on: &OnNetwork) -> Result<(), Failure> {
        let folder = Folder::of(&self.name);
        let settings = folder.own_settings();
        let settings = settings.ok_or_else(|| Failure::NoSuchMachine {
            name: self.name.clone(),
        })?;
        match connected(&settings, on) {
            // Its line may have been changed while nobody listened here.
            Ok(_) | Err(Failure::OnThatNetwork { .. }) => {}
            // It would not start so.
            Err(failure) => return Err(failure),
        }
        self.settle();
        self.check(on)?;
        let network = Store::of_user()?.network(&on.name)?;
        if self.has_left(&network) {
            return self.come_back(on, network);
        }
        self.lead_by_switch(&network)?;
        let place = self.join(on, network);
        let joined = place.and_then(|place| self.enter(place, on));
        joined.inspect_err(|_| self.lead_directly())
    }

    /// Makes wire and link of a place, and writes it down.
    fn enter(&mut self, mut place: Place, on: &OnNetwork) -> Result<(), Failure> {
        let made = self.plug(&mut place).and_then(|()| {
            Folder::of(&self.name).change_own(|settings| Settings {
                arguments: connected(&settings, on).unwrap_or(settings.arguments),
                further_networks: {
                    let mut networks = settings.further_networks;
                    networks.insert(on.name.clone(), place.lease.address);
                    networks
                },
                ..settings
            })
        });
        match made {
            Ok(()) => {
                self.places.push(place);
                self.tell_others();
                Ok(())
            }
            Err(failure) => {
                if !place.link.is_empty() {
                    self.drop_link(&place.link);
                }
                self.unplug(&place);
                Err(failure)
            }
        }
    }

    fn check(&self, on: &OnNetwork) -> Result<(), Failure> {
        if self.places.iter().any(|place| place.is_of(&on.name)) {
            return Err(Failure::OnThatNetwork {
                machine: self.name.clone(),
                network: on.name.clone(),
            });
        }
        // A switch of its own is no network.
        let networks = self
            .places
            .iter()
            .filter(|place| place.network.alone.is_none());
        match networks.count() + self.lost_wires.len() < NETWORKS_MAX {
            true => Ok(()),
            false => Err(Failure::TooManyNetworks { max: NETWORKS_MAX }),
        }
    }

    fn disconnect(&mut self, network: &str, by_force: bool) -> Result<(), Failure> {
        let at = self.places.iter().position(|place| place.is_of(network));
        let at = match at {
            // Its line may have it all the same.
            None => return line::change(&self.name, |settings| disconnected(settings, network)),
            Some(0) => return self.leave_first(network),
            Some(at) => at,
        };
        let link = self.places[at].link.clone();
        let removed = self.remove_link(&link);
        self.lost_links.retain(|lost| *lost != link);
        // It may remove it later; what it refuses stays as it is, unless it is cut off.
        if removed
            .as_ref()
            .is_err_and(|reason| by_force || *reason == steps::NO_ANSWER)
        {
            self.lost_links.push(link);
        }
        match removed {
            Err(reason) if !by_force => Err(Failure::LinkNotChanged {
                machine: self.name.clone(),
                what: format!("disconnected from {network}"),
                reason,
                way: "--force cuts it off all the same.",
            }),
            _ => self.leave(at),
        }
    }

    /// Leaves a network on which the machine has no link any more.
    fn leave(&mut self, at: usize) -> Result<(), Failure> {
        let place = self.places.remove(at);
        self.tell_others();
        self.unplug(&place);
        self.lead_directly();
        let network = &place.network.name;
        Folder::of(&self.name).change_own(|settings| Settings {
            arguments: disconnected(&settings, network).unwrap_or(settings.arguments),
            further_networks: {
                let mut networks = settings.further_networks;
                networks.remove(network);
                networks
            },
            ..settings
        })
    }
}

fn listen(path: &Path) -> io::Result<UnixListener> {
    // A machine of the same name that was killed has left one behind.
    let _ = fs::remove_file(path);
    let listener = UnixListener::bind(path)?;
    fs::set_permissions(path, Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// `None` for what is none.
fn read_wish(asker: &UnixStream) -> Option<Wish> {
    asker.set_read_timeout(Some(ASKING)).ok()?;
    let mut line = String::new();
    BufReader::new(asker.take(LINE_BYTES_MAX))
        .read_line(&mut line)
        .ok()?;
    serde_json::from_str(&line).ok()
}
