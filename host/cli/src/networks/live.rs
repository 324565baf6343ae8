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
//! It leaves by the same steps backwards. The session takes them one after the other, whatever becomes of who asked; if it is
//! killed itself, its machine ends with it.
//!
//! Not here: the first network, which leads out and stays as long as the machine runs.

use std::fs::{self, Permissions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use agent::{Request, Strings, Task, block};
use qemu::{Machine, Qmp, Stdio};
use switch::protocol::Join;

use super::request::{LINE_BYTES_MAX, Reply, Wish, socket};
use super::{
    NETWORKS_MAX, Place, Store, become_member, connected, disconnected, link_name, records,
};
use crate::agent::probe;
use crate::failure::Failure;
use crate::flags::{OnNetwork, RunFlags};
use crate::line;
use crate::state::{Folder, Settings};

/// How long the machine may take to make or remove a link.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long who asks may take to say what.
const ASKING: Duration = Duration::from_secs(10);
/// What the kernel says of a link that it has not made begins so.
const OF_FIRST_RECORD: &str = "line 1: ";
/// What is said of a machine that stands, or ends right now.
const NO_ANSWER: &str = "it does not answer";
/// Names of links that are tried: programs may have links of those names.
const NAMES_MAX: usize = 2 * NETWORKS_MAX;

/// A machine's places, which its session keeps.
pub(crate) struct Live {
    name: String,
    machine: Machine,
    /// Its further names on each network.
    aliases: Vec<String>,
    places: Vec<Place>,
    /// Wires that QEMU has not given back.
    lost_wires: Vec<u8>,
}

impl Live {
    /// Listens for wishes as long as this process lives, if the machine has a network and an agent. One that cannot be
    /// listened for keeps its networks until it ends.
    pub(crate) fn serve(places: Vec<Place>, machine: &Machine, name: &str, flags: &RunFlags) {
        if places.is_empty() || machine.stdio != Stdio::Ports {
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
        self.check(on)?;
        let mut place = self.join(on)?;
        let made = self.plug(&mut place).and_then(|()| {
            folder.change_own(|settings| Settings {
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
                    let _ = self.remove_link(&place.link);
                }
                self.unplug(&place);
                Err(failure)
            }
        }
    }

    fn check(&self, on: &OnNetwork) -> Result<(), Failure> {
        if self
            .places
            .iter()
            .any(|place| place.network.name == on.name)
        {
            return Err(Failure::OnThatNetwork {
                machine: self.name.clone(),
                network: on.name.clone(),
            });
        }
        match self.places.len() + self.lost_wires.len() < NETWORKS_MAX {
            true => Ok(()),
            false => Err(Failure::TooManyNetworks { max: NETWORKS_MAX }),
        }
    }

    /// A place on that network, where the machine has no wire and no link yet.
    fn join(&self, on: &OnNetwork) -> Result<Place, Failure> {
        let store = Store::of_user()?;
        let network = store.network(&on.name)?;
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
    fn plug(&self, place: &mut Place) -> Result<(), Failure> {
        let path = self.machine.socket_of_switch(place.wire);
        let added = self.qmp(|qmp| qmp.add_wire(place.wire, &path));
        added.map_err(|reason| self.not_connected(place, reason))?;
        let mut reason = String::new();
        for name in (1..=NAMES_MAX).map(link_name) {
            if self.places.iter().any(|other| other.link == name) {
                continue;
            }
            match self.add_link(&name, place) {
                Ok(()) => {
                    place.link = name;
                    return Ok(());
                }
                // A program has made a link of that name.
                Err(why) if why.starts_with(OF_FIRST_RECORD) => reason = why,
                Err(why) => {
                    let _ = self.remove_link(&name);
                    return Err(self.not_connected(place, why));
                }
            }
        }
        Err(self.not_connected(place, reason))
    }

    fn not_connected(&self, place: &Place, reason: String) -> Failure {
        let of_record = reason.strip_prefix("line ");
        let of_record = of_record.and_then(|rest| rest.split_once(": "));
        let reason = of_record.map_or(reason.clone(), |(_, why)| why.into());
        Failure::LinkNotChanged {
            machine: self.name.clone(),
            what: format!("connected to {}", place.network.name),
            reason,
            way: "Stop it, connect it, and start it again with `sietch restart`.",
        }
    }

    fn disconnect(&mut self, network: &str, by_force: bool) -> Result<(), Failure> {
        let at = self
            .places
            .iter()
            .position(|place| place.network.name == network);
        let (machine, network) = (self.name.clone(), network.to_string());
        let at = match at {
            // Its line may have it all the same.
            None => return line::change(&machine, |settings| disconnected(settings, &network)),
            Some(0) => return Err(Failure::FirstNetwork { machine, network }),
            Some(at) => at,
        };
        if let Err(reason) = self.remove_link(&self.places[at].link)
            && !by_force
        {
            return Err(Failure::LinkNotChanged {
                machine,
                what: format!("disconnected from {network}"),
                reason,
                way: "--force cuts it off all the same.",
            });
        }
        let place = self.places.remove(at);
        self.tell_others();
        self.unplug(&place);
        Folder::of(&self.name).change_own(|settings| Settings {
            arguments: disconnected(&settings, &network).unwrap_or(settings.arguments),
            further_networks: {
                let mut networks = settings.further_networks;
                networks.remove(&network);
                networks
            },
            ..settings
        })
    }

    /// Takes the wire away, and leaves the network.
    fn unplug(&mut self, place: &Place) {
        // While the switch is there, so that no frame meets a stream without one.
        if self.qmp(|qmp| qmp.remove_wire(place.wire)).is_err() {
            self.lost_wires.push(place.wire);
        }
        place.kept.leave();
        let _ = fs::remove_file(self.machine.socket_of_switch(place.wire));
    }

    /// The first network's switch, which the machine asks for names, asks those of the others.
    fn tell_others(&self) {
        let Some((first, further)) = self.places.split_first() else {
            return;
        };
        let others = further.iter().map(|place| place.kept.socket().into());
        first.kept.set_others(others.collect::<Vec<PathBuf>>());
    }

    /// Errors: words.
    fn qmp(&self, act: impl FnOnce(&mut Qmp) -> io::Result<()>) -> Result<(), String> {
        let qmp = Qmp::connect(&self.machine.qmp_socket());
        let mut qmp = qmp.map_err(|_| NO_ANSWER)?;
        act(&mut qmp).map_err(|error| error.to_string())
    }

    fn add_link(&self, name: &str, place: &Place) -> Result<(), String> {
        let records = records(name, &place.network, &place.lease);
        self.ask_kernel(Task::AddLinks, &records)
    }

    /// Errors: words.
    fn remove_link(&self, name: &str) -> Result<(), String> {
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
