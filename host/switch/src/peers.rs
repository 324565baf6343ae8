//! Names of the other networks that a member is on: their switches are asked who is there.
//!
//! A machine on several networks asks the switch of its first one only. What that one does not know it asks the others',
//! by the line with which anybody asks ([`crate::protocol`]), and goes on meanwhile: no switch waits for another, which may
//! ask it back. At most [`WAITING_MAX`] questions are under way, each for [`PATIENCE`].

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

use crate::fabric::Client;
use crate::network::Lease;
use crate::protocol::{Answer, Description, Request};

/// Questions under way at once.
const WAITING_MAX: usize = 64;
/// How long the other switches may take.
const PATIENCE: Duration = Duration::from_secs(2);
/// The longest answer: a network of 65 000 machines with long names has less.
const ANSWER_BYTES_MAX: usize = 16 << 20;

/// The questions under way.
#[derive(Debug, Default)]
pub(crate) struct Peers(Vec<Asking>);

#[derive(Debug)]
struct Asking {
    client: Client,
    message: Vec<u8>,
    name: String,
    /// Switches that have not answered yet, and what came of each.
    streams: Vec<(UnixStream, Vec<u8>)>,
    found: Vec<Lease>,
    until: Instant,
}

/// A question that was answered, or is not to be.
#[derive(Debug)]
pub(crate) struct Heard {
    /// Who asked.
    pub client: Client,
    /// What.
    pub message: Vec<u8>,
    /// What the machines of that name have on the other networks.
    pub found: Vec<Lease>,
}

impl Peers {
    /// Asks the switches at `sockets` for `name`, which `message` asks for.
    ///
    /// Errors: too many wait.
    pub fn ask(
        &mut self,
        sockets: &[PathBuf],
        client: Client,
        message: &[u8],
        name: &str,
        now: Instant,
    ) -> io::Result<()> {
        if self.0.len() >= WAITING_MAX {
            return Err(io::ErrorKind::QuotaExceeded.into());
        }
        // One that is not there knows nobody.
        let streams = sockets.iter().filter_map(|socket| call(socket).ok());
        self.0.push(Asking {
            client,
            message: message.to_vec(),
            name: name.into(),
            streams: streams.map(|stream| (stream, Vec::new())).collect(),
            found: Vec::new(),
            until: now + PATIENCE,
        });
        Ok(())
    }

    /// Whether an answer is awaited.
    pub fn is_waiting(&self) -> bool {
        !self.0.is_empty()
    }

    /// By which answers come.
    pub fn streams(&self) -> impl Iterator<Item = &UnixStream> {
        let streams = self.0.iter().flat_map(|asking| &asking.streams);
        streams.map(|(stream, _)| stream)
    }

    /// Reads what has come; the questions that have their answer, or waited too long.
    pub fn hear(&mut self, now: Instant) -> Vec<Heard> {
        self.0.iter_mut().for_each(Asking::read);
        let is_done = |asking: &mut Asking| {
            !asking.found.is_empty() || asking.streams.is_empty() || asking.until <= now
        };
        let done = self.0.extract_if(.., is_done);
        let heard = done.map(|asking| Heard {
            client: asking.client,
            message: asking.message,
            found: asking.found,
        });
        heard.collect()
    }
}

impl Asking {
    fn read(&mut self) {
        let (name, found) = (&self.name, &mut self.found);
        self.streams.retain_mut(|(stream, line)| {
            let goes_on = take_in(stream, line);
            if let Ok(Answer::Described(description)) = serde_json::from_slice(line) {
                found.extend(leases_of(&description, name));
                return false;
            }
            goes_on
        });
    }
}

/// Reads what there is; whether more may come.
fn take_in(stream: &mut UnixStream, line: &mut Vec<u8>) -> bool {
    let mut piece = [0; 1 << 14];
    loop {
        match stream.read(&mut piece) {
            Ok(0) => return false,
            Ok(len) => line.extend_from_slice(piece.get(..len).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return error.kind() == io::ErrorKind::WouldBlock,
        }
        if line.len() > ANSWER_BYTES_MAX {
            return false;
        }
    }
}

/// Asks a switch. One that stands still and has a full backlog counts as one that is not there (EAGAIN, unix(7)).
fn call(socket: &PathBuf) -> io::Result<UnixStream> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let caller = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    connect(&caller, &SocketAddrUnix::new(socket)?)?;
    let mut stream = UnixStream::from(caller);
    let mut line = serde_json::to_vec(&Request::Describe)?;
    line.push(b'\n');
    // A fresh connection has room for it.
    stream.write_all(&line)?;
    Ok(stream)
}

fn leases_of<'a>(there: &'a Description, name: &'a str) -> impl Iterator<Item = Lease> + 'a {
    let suffix = format!(".{}", there.network.to_ascii_lowercase());
    let short = name.strip_suffix(&suffix).unwrap_or(name);
    let members = there.members.iter();
    let called = members.filter(move |member| {
        let mut names = member.names.iter();
        names.any(|own| own == name || own == short)
    });
    called.map(|member| member.lease)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;
    use crate::network::tests::network;
    use crate::protocol::Member;

    const CLIENT: Client = Client {
        member: 1,
        port: 9,
        stream: None,
    };

    fn scene(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("sietch-peers-{name}-{}", std::process::id()))
    }

    fn answer_of(names: &[&str]) -> Vec<u8> {
        let network = network();
        let member = Member {
            names: names.iter().map(ToString::to_string).collect(),
            lease: network.lease([10, 89, 3, 7].into()),
        };
        let description = Description {
            network: network.name,
            members: vec![member],
            ..Description::default()
        };
        let mut line = serde_json::to_vec(&Answer::Described(description)).expect("JSON");
        line.push(b'\n');
        line
    }

    /// Hears until something is heard.
    fn heard(peers: &mut Peers) -> Vec<Heard> {
        loop {
            match peers.hear(Instant::now()) {
                none if none.is_empty() => std::thread::sleep(Duration::from_millis(1)),
                heard => return heard,
            }
        }
    }

    #[test]
    fn a_name_is_found_on_another_network_however_its_answer_is_cut() {
        let path = scene("found");
        let listener = UnixListener::bind(&path).expect("bound");
        let answer = answer_of(&["db", "store"]);
        for (name, is_there) in [("store", true), ("db.back", true), ("web", false)] {
            let mut peers = Peers::default();
            let sockets = [path.clone(), scene("nobody")];
            let asked = peers.ask(&sockets, CLIENT, b"who", name, Instant::now());
            asked.expect("there is room");
            let (mut stream, _) = listener.accept().expect("it calls");
            assert!(peers.hear(Instant::now()).is_empty());
            for piece in answer.chunks(100) {
                stream.write_all(piece).expect("it listens");
            }
            let heard = heard(&mut peers);
            assert_eq!(heard.len(), 1);
            assert_eq!((heard[0].client, &*heard[0].message), (CLIENT, &b"who"[..]));
            assert_eq!(!heard[0].found.is_empty(), is_there, "{name}");
        }
        std::fs::remove_file(path).expect("it was there");
    }

    #[test]
    fn a_switch_that_says_nothing_is_not_waited_for_without_end() {
        let path = scene("silent");
        let listener = UnixListener::bind(&path).expect("bound");
        let (mut peers, now) = (Peers::default(), Instant::now());
        let mut ask = || {
            let asked = peers.ask(std::slice::from_ref(&path), CLIENT, b"who", "db", now);
            let called = listener.accept();
            (asked.is_ok(), called)
        };
        let kept: Vec<_> = (0..WAITING_MAX).map(|_| ask()).collect();
        assert!(kept.iter().all(|(is_asked, _)| *is_asked));
        let asked = peers.ask(std::slice::from_ref(&path), CLIENT, b"who", "db", now);
        assert!(asked.is_err() && peers.hear(now).is_empty());
        let heard = peers.hear(now + PATIENCE);
        assert_eq!(heard.len(), WAITING_MAX);
        assert!(!peers.is_waiting() && heard.iter().all(|own| own.found.is_empty()));
        std::fs::remove_file(path).expect("it was there");
    }
}
