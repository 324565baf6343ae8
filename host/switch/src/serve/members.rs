//! Who is a member: visitors that say what they want, and connections whose end is a member's.

use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::time::Instant;

use super::{Connections, Switch};
use crate::fabric::{MemberId, Station};
use crate::leases::NoLease;
use crate::protocol::{ALIASES_MAX, Answer, Description, Join, LINE_BYTES_MAX, Member, Request};
use crate::socket::Socket;

impl Switch {
    pub(super) fn let_in(&mut self, listener: &UnixListener) {
        if let Ok((stream, _)) = listener.accept()
            && stream.set_nonblocking(true).is_ok()
        {
            self.visitors.push((stream, Vec::new()));
        }
    }

    /// Reads what a visitor wants; one that has said it is none any more.
    pub(super) fn hear(&mut self, number: usize, now: Instant) {
        let Some((stream, line)) = self.visitors.get_mut(number) else {
            return;
        };
        let mut piece = [0; 4096];
        let is_gone = match stream.read(&mut piece) {
            Ok(len) => {
                line.extend_from_slice(piece.get(..len).unwrap_or_default());
                len == 0 || line.len() > LINE_BYTES_MAX
            }
            Err(error) => error.kind() != io::ErrorKind::WouldBlock,
        };
        let has_said = line.ends_with(b"\n");
        if !has_said && !is_gone {
            return;
        }
        let (stream, line) = self.visitors.swap_remove(number);
        if has_said && let Ok(request) = serde_json::from_slice(&line) {
            self.answer(stream, request, now);
        }
    }

    fn answer(&mut self, mut stream: UnixStream, request: Request, now: Instant) {
        let (answer, member) = match request {
            Request::Describe => (Answer::Described(self.description()), None),
            Request::Others { name, others } => (self.note_others(&name, others), None),
            Request::Join(join) => match self.admit(&join) {
                Ok((answer, id)) => (answer, Some((id, join))),
                Err(NoLease::Never(sentence)) => (Answer::Refused(sentence), None),
                Err(NoLease::Taken(sentence)) => (Answer::Taken(sentence), None),
            },
        };
        let mut line = serde_json::to_vec(&answer).unwrap_or_default();
        line.push(b'\n');
        // A fresh connection has room for it; one that is gone needs no answer.
        let is_told = stream.write_all(&line).is_ok();
        let Some((id, join)) = member else {
            return;
        };
        if !is_told {
            return self.fabric.remove(id);
        }
        let connections = Connections {
            control: stream,
            card: Socket::new(join.card, now),
            way_out: join.way_out.map(|path| Socket::new(path, now)),
            others: join.others,
        };
        self.connections.insert(id, connections);
    }

    fn admit(&mut self, join: &Join) -> Result<(Answer, MemberId), NoLease> {
        let mut names = vec![join.name.to_ascii_lowercase()];
        names.extend(join.aliases.iter().map(|alias| alias.to_ascii_lowercase()));
        if join.aliases.len() > ALIASES_MAX {
            return Err(NoLease::Never(format!(
                "A machine has {ALIASES_MAX} further names at most."
            )));
        }
        let mut members = self.fabric.members().values();
        if members.any(|member| member.names.first() == names.first()) {
            return Err(NoLease::Taken(format!(
                "A machine called {} is there already.",
                join.name
            )));
        }
        let fabric = &self.fabric;
        let network = fabric.network();
        let taken = |address| fabric.is_taken(address);
        let address = self.leases.take(network, &join.name, join.wish, taken)?;
        // Where it cannot be written, a name may have another address next time.
        let _ = self.leases.write(&self.files.leases);
        let lease = network.lease(address);
        let id = self.next_id;
        self.next_id += 1;
        let has_others = !join.others.is_empty();
        let station = Station {
            names,
            lease,
            has_others,
            is_further: join.way_out.is_none(),
        };
        self.fabric.add(id, station);
        Ok((Answer::Joined(lease), id))
    }

    /// A member is on other networks than before.
    fn note_others(&mut self, name: &str, others: Vec<PathBuf>) -> Answer {
        let name = name.to_ascii_lowercase();
        let mut members = self.fabric.members().iter();
        let found = members.find(|(_, station)| station.names.first() == Some(&name));
        let id = found.map(|(id, _)| *id);
        match id.and_then(|id| Some((id, self.connections.get_mut(&id)?))) {
            Some((id, own)) => {
                self.fabric.set_has_others(id, !others.is_empty());
                own.others = others;
                Answer::Done
            }
            None => Answer::Refused(format!("No machine called {name} is there.")),
        }
    }

    fn description(&self) -> Description {
        let members = self.fabric.members().values().map(|station| Member {
            names: station.names.clone(),
            lease: station.lease,
        });
        Description {
            pid: std::process::id(),
            network: self.fabric.network().name.clone(),
            members: members.collect(),
            drops: self.fabric.drops,
        }
    }

    /// A member says nothing more: what comes is its end.
    pub(super) fn look_after(&mut self, id: MemberId, now: Instant) {
        let Some(own) = self.connections.get_mut(&id) else {
            return;
        };
        let is_there = match own.control.read(&mut [0; 64]) {
            Ok(len) => len > 0,
            Err(error) => error.kind() == io::ErrorKind::WouldBlock,
        };
        if !is_there {
            self.connections.remove(&id);
            self.fabric.remove(id);
            if let Some(server) = &mut self.dns_tcp {
                server.forget(id);
            }
            self.alone_since = now;
        }
    }
}
