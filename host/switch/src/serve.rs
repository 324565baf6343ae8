//! The switch as a process: one thread that waits for all sockets.
//!
//! What a way out sends waits in its socket while its member does not keep up, and what a member sends while its way out does not:
//! both have one receiver, so nobody else waits. Between members a receiver that does not keep up loses frames, as on any
//! switch.

mod frames;
mod members;
mod questions;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{AtFlags, FlockOperation, flock, unlinkat};
use rustix::io::Errno;

use crate::dns_tcp;
use crate::fabric::{Fabric, MemberId, Port};
use crate::leases::Leases;
use crate::network::Network;
use crate::peers::Peers;
use crate::resolver::Resolver;
use crate::resolver::stream::Calls;
use crate::socket::Socket;
use frames::interest;

/// How long a switch waits for its first member, or the next one.
const LINGER: Duration = Duration::from_secs(2);
/// Connections that have not said yet what they want.
const VISITORS_MAX: usize = 64;
/// How often what has no event is looked at: questions that wait, and the end.
const TICK: Duration = Duration::from_millis(500);

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
    let folder = File::open(files.socket.parent().unwrap_or(Path::new(".")))?;
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
    // Whoever called in vain starts another one once the lock is free. Who removed the network removed the socket, and
    // one of that name may be another switch's by now.
    let name = files.socket.file_name().unwrap_or_default();
    match unlinkat(&folder, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
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
            Ok(_) | Err(Errno::INTR) => {}
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
}
