//! Questions for names that are not the network's own: the host's resolver answers them.
//!
//! Each goes out under a number of ours, so that two members may use the same one. At most [`WAITING_MAX`] wait at a
//! time, each for [`PATIENCE`]; who asked asks again then.

pub mod stream;

use std::collections::BTreeMap;
use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use crate::fabric::Client;
use crate::names::truncated;

const RESOLV_CONF: &str = "/etc/resolv.conf";
const DNS_PORT: u16 = 53;
/// Questions under way at once.
pub const WAITING_MAX: usize = 256;
/// How long a question may wait for its answer.
pub const PATIENCE: Duration = Duration::from_secs(5);
/// The longest answer that fits into a frame; of a longer one the asker hears that it is (RFC 2181 9), and asks by TCP.
const ANSWER_BYTES_MAX: usize = 1472;
/// The longest datagram.
const DATAGRAM_BYTES_MAX: usize = u16::MAX as usize;

/// The questions under way.
#[derive(Debug, Default)]
pub struct Resolver {
    /// To whom the socket is connected.
    peer: Option<(SocketAddr, UdpSocket)>,
    waiting: BTreeMap<u16, Waiting>,
    chance: RandomState,
    asked: u64,
}

#[derive(Debug)]
struct Waiting {
    client: Client,
    /// The client's own number.
    number: [u8; 2],
    until: Instant,
}

impl Resolver {
    /// The socket at which answers come.
    pub fn socket(&self) -> Option<&UdpSocket> {
        self.peer.as_ref().map(|(_, socket)| socket)
    }

    /// Whether an answer is awaited.
    pub fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Passes a question on to `server`.
    ///
    /// Errors: too many wait, or it cannot be asked.
    pub fn ask(
        &mut self,
        server: SocketAddr,
        client: Client,
        message: &[u8],
        now: Instant,
    ) -> io::Result<()> {
        if self.waiting.len() >= WAITING_MAX {
            return Err(io::ErrorKind::QuotaExceeded.into());
        }
        let number = self.free_number();
        let mut message = message.to_vec();
        let first = message.first_chunk_mut::<2>();
        let first = first.ok_or(io::ErrorKind::InvalidInput)?;
        let own = std::mem::replace(first, number.to_be_bytes());
        self.connect(server)?.send(&message)?;
        let waiting = Waiting {
            client,
            number: own,
            until: now + PATIENCE,
        };
        self.waiting.insert(number, waiting);
        Ok(())
    }

    fn connect(&mut self, server: SocketAddr) -> io::Result<&UdpSocket> {
        if !matches!(&self.peer, Some((peer, _)) if *peer == server) {
            let any: IpAddr = match server {
                SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
                SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
            };
            let socket = UdpSocket::bind((any, 0))?;
            socket.set_nonblocking(true)?;
            socket.connect(server)?;
            self.peer = Some((server, socket));
        }
        self.socket()
            .ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    /// A number that nobody can guess and no question has.
    fn free_number(&mut self) -> u16 {
        loop {
            self.asked += 1;
            let number = self.chance.hash_one(self.asked) as u16;
            if !self.waiting.contains_key(&number) {
                return number;
            }
        }
    }

    /// The next answer that somebody waits for.
    pub fn answer(&mut self) -> Option<(Client, Vec<u8>)> {
        let mut message = [0; DATAGRAM_BYTES_MAX];
        loop {
            let len = self.socket()?.recv(&mut message).ok()?;
            let Some((number, rest)) = message.get(..len)?.split_first_chunk::<2>() else {
                continue;
            };
            if let Some(waiting) = self.waiting.remove(&u16::from_be_bytes(*number)) {
                let answer = [&waiting.number[..], rest].concat();
                // Who asked asks again where there is none.
                if let Some(answer) = fitting(answer) {
                    return Some((waiting.client, answer));
                }
            }
        }
    }

    /// Forgets questions that waited too long; how many.
    pub fn expire(&mut self, now: Instant) -> u64 {
        let before = self.waiting.len();
        self.waiting.retain(|_, waiting| waiting.until > now);
        (before - self.waiting.len()) as u64
    }
}

/// The answer, or that it is too long; `None` for one that is no message.
fn fitting(answer: Vec<u8>) -> Option<Vec<u8>> {
    match answer.len() > ANSWER_BYTES_MAX {
        true => truncated(&answer),
        false => Some(answer),
    }
}

/// The host's resolver, as resolv.conf(5) names it first.
pub fn of_host() -> Option<SocketAddr> {
    let text = fs::read_to_string(RESOLV_CONF).ok()?;
    first_server(&text).map(|server| SocketAddr::new(server, DNS_PORT))
}

fn first_server(text: &str) -> Option<IpAddr> {
    let servers = text.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let server = words.next().filter(|word| *word == "nameserver");
        server.and(words.next())?.parse().ok()
    });
    { servers }.next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_members_with_the_same_number_get_their_own_answers() {
        let server = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let at = server.local_addr().expect("bound");
        let (mut resolver, now) = (Resolver::default(), Instant::now());
        let client = |member| Client {
            member,
            port: 9,
            stream: None,
        };
        for member in [1, 2] {
            let message = [0, 7, member as u8];
            resolver
                .ask(at, client(member), &message, now)
                .expect("sent");
        }
        let mut questions = [[0; 3]; 2];
        for question in &mut questions {
            server.recv(question).expect("a question");
        }
        let back = resolver
            .socket()
            .expect("it asked")
            .local_addr()
            .expect("bound");
        // What nobody asked for, and the later one first.
        for answer in [&[1][..], &questions[1], &questions[1], &questions[0]] {
            server
                .send_to(answer, ("127.0.0.1", back.port()))
                .expect("sent");
        }
        assert_eq!(resolver.answer(), Some((client(2), vec![0, 7, 2])));
        assert_eq!(resolver.answer(), Some((client(1), vec![0, 7, 1])));
        assert_eq!(resolver.answer(), None);
    }

    #[test]
    fn an_answer_that_no_frame_has_room_for_is_one_that_says_so() {
        let message = crate::names::tests::question("long", 16);
        let long = [&message[..], &[7; 2000]].concat();
        assert_eq!(fitting(message.clone()), Some(message.clone()));
        let cut = fitting(long).expect("a message");
        assert_eq!((cut.len(), cut[2] & 2), (message.len(), 2));
        assert_eq!(fitting(vec![0xff; 2000]), None);
    }

    #[test]
    fn questions_that_wait_are_bounded_in_number_and_time() {
        let server = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let at = server.local_addr().expect("bound");
        let (mut resolver, now) = (Resolver::default(), Instant::now());
        let client = Client {
            member: 1,
            port: 9,
            stream: None,
        };
        let mut ask = || resolver.ask(at, client, &[0, 1], now).is_ok();
        assert_eq!((0..300).filter(|_| ask()).count(), WAITING_MAX);
        assert_eq!(resolver.expire(now), 0);
        assert_eq!(resolver.expire(now + PATIENCE), WAITING_MAX as u64);
        assert!(!resolver.is_waiting());
    }

    #[test]
    fn the_first_server_of_resolv_conf_counts() {
        let text = "# of a test\nsearch a.b\nnameserver fe80::1%eth0\nnameserver 192.0.2.1\n";
        assert_eq!(first_server(text), Some([192, 0, 2, 1].into()));
        assert_eq!(first_server("nameserver\n"), None);
    }
}
