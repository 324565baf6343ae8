//! The switch as a process: one thread that waits for all sockets.
//!
//! What a way out sends waits in its socket while its member does not keep up, and what a member sends while its way out does not:
//! both have one receiver, so nobody else waits. Between members a receiver that does not keep up loses frames, as on any
//! switch.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FlockOperation, flock};

use crate::dns_tcp;
use crate::fabric::{Client, Fabric, Left, MemberId, Port, Resolved, Station, Unanswered};
use crate::leases::{Leases, NoLease};
use crate::names::{DATAGRAM_BYTES_MAX, Outcome, Question};
use crate::network::Network;
use crate::peers::Peers;
use crate::protocol::{ALIASES_MAX, Answer, Description, Join, LINE_BYTES_MAX, Member, Request};
use crate::resolver::stream::Calls;
use crate::resolver::{self, Resolver};
use crate::socket::{NotQueued, Socket};

/// How long a switch waits for its first member, or the next one.
const LINGER: Duration = Duration::from_secs(2);
/// Connections that have not said yet what they want.
const VISITORS_MAX: usize = 64;
/// How often what has no event is looked at: questions that wait, and the end.
const TICK: Duration = Duration::from_millis(500);
/// Reads of one port until another one has its turn.
const READS_PER_TURN: usize = 4;
/// Questions of one connection until other sockets have their turn.
const QUESTIONS_PER_TURN: usize = 8;

/// Where a network's switch is found.
#[derive(Clone, Debug)]
pub struct Files {
    /// Its socket.
    pub socket: PathBuf,
    /// Locked as long as it runs.
    pub lock: PathBuf,
    /// Who had which address.
    pub leases: PathBuf,
}

/// A port's or a connection's event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    Knock,
    Resolved,
    PeerAnswered,
    CallAnswered,
    Visitor(usize),
    Control(MemberId),
    Port(Port),
}

#[derive(Debug)]
struct Connections {
    /// Held, that the member is one; and where it says nothing more.
    control: UnixStream,
    card: Socket,
    way_out: Option<Socket>,
    /// The switches of other networks that it is on.
    others: Vec<PathBuf>,
}

#[derive(Debug)]
struct Switch {
    fabric: Fabric,
    connections: BTreeMap<MemberId, Connections>,
    visitors: Vec<(UnixStream, Vec<u8>)>,
    resolver: Resolver,
    /// The host's resolver by TCP.
    calls: Calls,
    /// Our own end of TCP, once somebody has called.
    dns_tcp: Option<dns_tcp::Server>,
    peers: Peers,
    leases: Leases,
    files: Files,
    next_id: MemberId,
    /// Since when there is no member.
    alone_since: Instant,
}

/// Serves `network` until its last member has left; at once if another process does.
pub fn serve(network: Network, files: &Files) -> io::Result<()> {
    let lock = File::create(&files.lock)?;
    if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
        return Ok(());
    }
    // A switch that was killed left it.
    let _ = fs::remove_file(&files.socket);
    let listener = UnixListener::bind(&files.socket)?;
    listener.set_nonblocking(true)?;
    let mut switch = Switch {
        fabric: Fabric::new(network),
        connections: BTreeMap::new(),
        visitors: Vec::new(),
        resolver: Resolver::default(),
        calls: Calls::default(),
        dns_tcp: None,
        peers: Peers::default(),
        leases: Leases::read(&files.leases),
        files: files.clone(),
        next_id: 1,
        alone_since: Instant::now(),
    };
    while !switch.is_done() {
        let events = switch.wait(&listener)?;
        switch.turn(&listener, &events);
    }
    // Whoever called in vain starts another one once the lock is free.
    fs::remove_file(&files.socket)
}

impl Switch {
    fn is_done(&self) -> bool {
        self.connections.is_empty()
            && self.visitors.is_empty()
            && self.alone_since.elapsed() > LINGER
    }

    /// Waits until something is to be done; what.
    fn wait(&mut self, listener: &UnixListener) -> io::Result<Vec<Event>> {
        let now = Instant::now();
        self.call(now);
        let wanted = self.wanted(listener);
        let mut polled: Vec<PollFd> = wanted
            .iter()
            .map(|(_, fd, flags)| PollFd::from_borrowed_fd(*fd, *flags))
            .collect();
        let timeout = self.patience(now).map(|patience| Timespec {
            tv_sec: patience.as_secs() as i64,
            tv_nsec: patience.subsec_nanos().into(),
        });
        match poll(&mut polled, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let fired = wanted.iter().zip(&polled);
        let fired = fired.filter(|(_, polled)| !polled.revents().is_empty());
        Ok(fired.map(|((event, ..), _)| *event).collect())
    }

    /// Calls for those who are not connected. A way out is told whose it is, as it would learn that only from what
    /// its member sends.
    fn call(&mut self, now: Instant) {
        for (id, own) in &mut self.connections {
            own.card.call(now);
            let announcement = self.fabric.announcement(*id);
            if let (Some(way_out), Some(announcement)) = (&mut own.way_out, announcement)
                && way_out.call(now)
            {
                // Its queue is empty.
                let _ = way_out.queue(&announcement);
                way_out.flush(now);
            }
        }
    }

    /// How long nothing needs to be done without an event.
    fn patience(&self, now: Instant) -> Option<Duration> {
        let ports = self.connections.values();
        let calls = ports.flat_map(|own| [Some(&own.card), own.way_out.as_ref()]);
        let calls = calls.flatten().filter_map(Socket::next_call);
        let calls = calls.map(|at| at.saturating_duration_since(now));
        let is_asking =
            self.resolver.is_waiting() || self.peers.is_waiting() || self.calls.is_waiting();
        let ticks = self.connections.is_empty() || is_asking;
        let own_tcp = self.dns_tcp.as_ref();
        let own_tcp = own_tcp.and_then(|server| server.patience(now));
        calls.chain(ticks.then_some(TICK)).chain(own_tcp).min()
    }

    fn wanted<'a>(&'a self, listener: &'a UnixListener) -> Vec<(Event, BorrowedFd<'a>, PollFlags)> {
        let mut wanted = vec![];
        if self.visitors.len() < VISITORS_MAX {
            wanted.push((Event::Knock, listener.as_fd(), PollFlags::IN));
        }
        let answers = self.resolver.socket().map(AsFd::as_fd);
        wanted.extend(answers.map(|fd| (Event::Resolved, fd, PollFlags::IN)));
        let peers = self.peers.streams();
        wanted.extend(peers.map(|peer| (Event::PeerAnswered, peer.as_fd(), PollFlags::IN)));
        wanted.extend(self.calls.streams().map(|(stream, sends)| {
            let flags = if sends { PollFlags::OUT } else { PollFlags::IN };
            (Event::CallAnswered, stream.as_fd(), flags)
        }));
        for (number, (stream, _)) in self.visitors.iter().enumerate() {
            wanted.push((Event::Visitor(number), stream.as_fd(), PollFlags::IN));
        }
        for (id, own) in &self.connections {
            wanted.push((Event::Control(*id), own.control.as_fd(), PollFlags::IN));
            let card = interest(&own.card, own.way_out.as_ref());
            let way_out = own.way_out.as_ref();
            let way_out = way_out.and_then(|way_out| interest(way_out, Some(&own.card)));
            wanted.extend(card.map(|(fd, flags)| (Event::Port(Port::Card(*id)), fd, flags)));
            let event = Event::Port(Port::WayOut(*id));
            wanted.extend(way_out.map(|(fd, flags)| (event, fd, flags)));
        }
        wanted
    }

    fn turn(&mut self, listener: &UnixListener, events: &[Event]) {
        let now = Instant::now();
        // The last visitors first: one that is taken away moves none that is still to come.
        for event in events.iter().rev() {
            match event {
                Event::Knock => self.let_in(listener),
                Event::Resolved => self.bring_answers(),
                // Looked at below.
                Event::PeerAnswered | Event::CallAnswered => {}
                Event::Visitor(number) => self.hear(*number, now),
                Event::Control(id) => self.look_after(*id, now),
                Event::Port(port) => self.pass_on(*port, now),
            }
        }
        self.bring_peers_answers(now);
        self.bring_called_answers(now);
        self.serve_dns_tcp(now);
        self.sockets().for_each(|socket| socket.flush(now));
        self.fabric.drops.resolver += self.resolver.expire(now);
    }

    fn sockets(&mut self) -> impl Iterator<Item = &mut Socket> {
        let members = self.connections.values_mut();
        let sockets = members.flat_map(|own| [Some(&mut own.card), own.way_out.as_mut()]);
        sockets.flatten()
    }

    fn let_in(&mut self, listener: &UnixListener) {
        if let Ok((stream, _)) = listener.accept()
            && stream.set_nonblocking(true).is_ok()
        {
            self.visitors.push((stream, Vec::new()));
        }
    }

    /// Reads what a visitor wants; one that has said it is none any more.
    fn hear(&mut self, number: usize, now: Instant) {
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
    fn look_after(&mut self, id: MemberId, now: Instant) {
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

    /// Passes on what a port has, for a turn.
    fn pass_on(&mut self, port: Port, now: Instant) {
        for _ in 0..READS_PER_TURN {
            if !self.may_read(port, now) {
                return;
            }
            let Some(socket) = socket_of(&mut self.connections, port) else {
                return;
            };
            if !socket.fill(now) {
                return;
            }
            // Taken out meanwhile, as frames may go to any socket.
            let mut inbox = std::mem::take(&mut socket.inbox);
            let is_sound = loop {
                match inbox.take() {
                    Ok(Some(frame)) => self.forward(port, frame, now),
                    Ok(None) => break true,
                    Err(_) => break false,
                }
            };
            let Some(socket) = socket_of(&mut self.connections, port) else {
                return;
            };
            socket.inbox = inbox;
            if !is_sound {
                self.fabric.drops.bad_length += 1;
                return socket.cut(now);
            }
        }
    }

    /// Whether who receives what this port sends keeps up.
    fn may_read(&mut self, port: Port, now: Instant) -> bool {
        let other = match port {
            Port::Card(id) => Port::WayOut(id),
            Port::WayOut(id) => Port::Card(id),
        };
        socket_of(&mut self.connections, other).is_none_or(|socket| {
            socket.flush(now);
            socket.keeps_up()
        })
    }

    fn forward(&mut self, from: Port, frame: &[u8], now: Instant) {
        let (mut full, mut absent) = (0, 0);
        let connections = &mut self.connections;
        let asked = self.fabric.forward(from, frame, &mut |to, frame| {
            let queued = socket_of(connections, to).map(|socket| socket.queue(frame));
            match queued {
                Some(Ok(())) => {}
                Some(Err(NotQueued::Full)) => full += 1,
                Some(Err(NotQueued::NotConnected)) | None => absent += 1,
            }
        });
        self.fabric.drops.queue_full += full;
        self.fabric.drops.not_connected += absent;
        match asked {
            Some(Left::Question(asked)) => self.ask_others(asked, now),
            Some(Left::Segment(frame)) => self.take_segment(frame, now),
            None => {}
        }
    }

    fn ask_others(&mut self, asked: Unanswered<'_>, now: Instant) {
        match asked.has_others {
            true => self.ask_peers(asked, now),
            false => self.ask(asked.client, asked.message, now),
        }
    }

    fn take_segment(&mut self, frame: &[u8], now: Instant) {
        if self.dns_tcp.is_none() {
            self.dns_tcp = dns_tcp::Server::new(self.fabric.network(), now).ok();
        }
        match &mut self.dns_tcp {
            Some(server) => server.receive(frame, now),
            None => self.fabric.drops.resolver += 1,
        }
    }

    /// Lets our own end of TCP do what is due, answers what it was asked, and sends what it has.
    fn serve_dns_tcp(&mut self, now: Instant) {
        // A connection's next question may be there when its last one is answered.
        for _ in 0..QUESTIONS_PER_TURN {
            let fabric = &self.fabric;
            let member_of = |address| fabric.member_with(address).map(|(id, _)| *id);
            let server = self.dns_tcp.as_mut();
            let asked = server.map(|server| server.turn(now, member_of));
            let asked = asked.unwrap_or_default();
            if asked.is_empty() {
                break;
            }
            asked.iter().for_each(|asked| self.resolve(asked, now));
        }
        self.send_dns_tcp();
    }

    fn resolve(&mut self, asked: &dns_tcp::Asked, now: Instant) {
        let client = Client {
            member: asked.member,
            port: dns_tcp::DNS_PORT,
            stream: Some(asked.stream),
        };
        match self.fabric.question_by_stream(client, &asked.message) {
            Some(Resolved::Own(answer)) => self.bring(client, &answer),
            Some(Resolved::ByOthers(unanswered)) => self.ask_others(unanswered, now),
            // The connection ends.
            None => self.bring(client, &[]),
        }
    }

    fn send_dns_tcp(&mut self) {
        let fabric = &self.fabric;
        let server = self.dns_tcp.as_mut();
        let frames = server.map(|server| server.frames(|address| fabric.station_of(address)));
        for (station, frame) in frames.unwrap_or_default() {
            let mut members = self.fabric.members().iter();
            let to = members.find(|(_, member)| member.lease.mac == station.0);
            let to = to.map(|(id, _)| Port::Card(*id));
            let socket = to.and_then(|to| socket_of(&mut self.connections, to));
            // What is lost is sent again.
            match socket.map(|socket| socket.queue(&frame)) {
                Some(Ok(())) => {}
                Some(Err(NotQueued::Full)) => self.fabric.drops.queue_full += 1,
                Some(Err(NotQueued::NotConnected)) | None => self.fabric.drops.not_connected += 1,
            }
        }
    }

    fn bring_called_answers(&mut self, now: Instant) {
        for (client, answer) in self.calls.hear(now) {
            if answer.is_none() {
                self.fabric.drops.resolver += 1;
            }
            self.bring(client, &answer.unwrap_or_default());
        }
    }

    fn ask_peers(&mut self, asked: Unanswered<'_>, now: Instant) {
        let Unanswered {
            client, message, ..
        } = asked;
        let own = self.connections.get(&client.member);
        let others = own.map_or(&[][..], |own| &own.others);
        let name = Question::parse(message).map(|question| question.name);
        let name = name.unwrap_or_default();
        if self.peers.ask(others, client, message, &name, now).is_err() {
            self.fabric.drops.resolver += 1;
            // By datagrams who asked asks again; a connection waits for its answer, and ends.
            if client.stream.is_some() {
                self.bring(client, &[]);
            }
        }
    }

    fn bring_peers_answers(&mut self, now: Instant) {
        for heard in self.peers.hear(now) {
            let question = Question::parse(&heard.message);
            let answer = question.and_then(|question| {
                self.fabric
                    .answer_of_others(heard.client, &question, &heard.found)
            });
            match answer {
                Some(answer) => self.bring(heard.client, &answer),
                None => self.ask(heard.client, &heard.message, now),
            }
        }
    }

    fn ask(&mut self, client: Client, message: &[u8], now: Instant) {
        let server = resolver::of_host().ok_or(io::ErrorKind::NotFound.into());
        let asked = server.and_then(|server| match client.stream {
            Some(_) => self.calls.ask(server, client, message, now),
            None => self.resolver.ask(server, client, message, now),
        });
        if asked.is_err() {
            self.fabric.drops.resolver += 1;
            let question = Question::parse(message);
            let answer =
                question.map(|question| question.answer(Outcome::Failed, &[], DATAGRAM_BYTES_MAX));
            self.bring(client, &answer.unwrap_or_default());
        }
    }

    fn bring_answers(&mut self) {
        for _ in 0..resolver::WAITING_MAX {
            let Some((client, answer)) = self.resolver.answer() else {
                return;
            };
            self.bring(client, &answer);
        }
    }

    fn bring(&mut self, client: Client, answer: &[u8]) {
        if let Some(stream) = client.stream {
            if let Some(server) = &mut self.dns_tcp {
                server.answer(stream, answer, Instant::now());
            }
            return;
        }
        let frame = self.fabric.answer_frame(client, answer);
        let socket = socket_of(&mut self.connections, Port::Card(client.member));
        let queued = frame
            .zip(socket)
            .map(|(frame, socket)| socket.queue(&frame));
        if !matches!(queued, Some(Ok(()))) {
            self.fabric.drops.resolver += 1;
        }
    }
}

/// What is waited for at `socket`, whose frames go to `other` and perhaps elsewhere.
fn interest<'a>(socket: &'a Socket, other: Option<&Socket>) -> Option<(BorrowedFd<'a>, PollFlags)> {
    let mut flags = PollFlags::empty();
    flags.set(PollFlags::IN, other.is_none_or(Socket::keeps_up));
    flags.set(PollFlags::OUT, socket.has_output());
    Some((socket.stream()?.as_fd(), flags))
}

fn socket_of(connections: &mut BTreeMap<MemberId, Connections>, port: Port) -> Option<&mut Socket> {
    match port {
        Port::Card(id) => Some(&mut connections.get_mut(&id)?.card),
        Port::WayOut(id) => connections.get_mut(&id)?.way_out.as_mut(),
    }
}
