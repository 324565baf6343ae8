//! The host's resolver by TCP (RFC 7766): for who asked us so, mostly since the answer had no room in a datagram.
//!
//! A connection for each question, which ends with its answer. At most [`CALLS_MAX`] are under way, each for
//! [`PATIENCE`](super::PATIENCE).

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Instant;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with};

use super::PATIENCE;
use crate::fabric::Client;
use crate::names::{LENGTH_BYTES, STREAM_BYTES_MAX, missing};

/// Questions under way at once.
pub const CALLS_MAX: usize = 64;

/// The questions under way.
#[derive(Debug, Default)]
pub struct Calls(Vec<Call>);

#[derive(Debug)]
struct Call {
    client: Client,
    stream: TcpStream,
    /// What is not sent yet.
    outbox: Vec<u8>,
    inbox: Vec<u8>,
    until: Instant,
}

/// How far a call is.
enum Progress {
    GoesOn,
    Answered(Vec<u8>),
    Failed,
}

impl Calls {
    /// Asks `server`.
    ///
    /// Errors: too many wait, it cannot be asked, or the question is too long.
    pub fn ask(
        &mut self,
        server: SocketAddr,
        client: Client,
        message: &[u8],
        now: Instant,
    ) -> io::Result<()> {
        if self.0.len() >= CALLS_MAX {
            return Err(ErrorKind::QuotaExceeded.into());
        }
        let len = u16::try_from(message.len()).map_err(|_| ErrorKind::InvalidInput)?;
        let call = Call {
            client,
            stream: call(server)?,
            outbox: [&len.to_be_bytes()[..], message].concat(),
            inbox: Vec::new(),
            until: now + PATIENCE,
        };
        self.0.push(call);
        Ok(())
    }

    /// Whether an answer is awaited.
    pub fn is_waiting(&self) -> bool {
        !self.0.is_empty()
    }

    /// The connections, and whether each waits to send.
    pub fn streams(&self) -> impl Iterator<Item = (&TcpStream, bool)> {
        let calls = self.0.iter();
        calls.map(|call| (&call.stream, !call.outbox.is_empty()))
    }

    /// Goes on with all; the answers that have come, and `None` for each question that has none.
    pub fn hear(&mut self, now: Instant) -> Vec<(Client, Option<Vec<u8>>)> {
        let mut heard = Vec::new();
        self.0.retain_mut(|call| {
            let answer = match call.go_on() {
                Progress::GoesOn if call.until > now => return true,
                Progress::Answered(answer) => Some(answer),
                Progress::GoesOn | Progress::Failed => None,
            };
            heard.push((call.client, answer));
            false
        });
        heard
    }
}

impl Call {
    fn go_on(&mut self) -> Progress {
        while !self.outbox.is_empty() {
            match self.stream.write(&self.outbox) {
                Ok(count @ 1..) => drop(self.outbox.drain(..count)),
                Err(error) if waits(&error) => return Progress::GoesOn,
                Ok(0) | Err(_) => return Progress::Failed,
            }
        }
        loop {
            let room = match missing(&self.inbox, STREAM_BYTES_MAX) {
                Some(0) => return Progress::Answered(self.inbox.split_off(LENGTH_BYTES)),
                Some(room) => room,
                None => return Progress::Failed,
            };
            let mut piece = [0; 4096];
            let room = piece.get_mut(..room.min(4096)).unwrap_or_default();
            match self.stream.read(room) {
                Ok(count @ 1..) => {
                    self.inbox
                        .extend_from_slice(piece.get(..count).unwrap_or_default());
                }
                Err(error) if waits(&error) => return Progress::GoesOn,
                Ok(0) | Err(_) => return Progress::Failed,
            }
        }
    }
}

/// Whether a call that failed so is to be tried again when the socket is ready. One that is not connected yet says `ENOTCONN`.
fn waits(error: &io::Error) -> bool {
    let kinds = [
        ErrorKind::WouldBlock,
        ErrorKind::Interrupted,
        ErrorKind::NotConnected,
    ];
    kinds.contains(&error.kind())
}

/// Begins a connection.
fn call(server: SocketAddr) -> io::Result<TcpStream> {
    let family = match server {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(family, SocketType::STREAM, flags, None)?;
    match connect(&socket, &server) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(socket.into()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;
    use std::time::Duration;

    use super::*;

    const CLIENT: Client = Client {
        member: 1,
        port: 9,
        stream: None,
    };

    fn hear(calls: &mut Calls) -> Vec<(Client, Option<Vec<u8>>)> {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let heard = calls.hear(Instant::now());
            if !heard.is_empty() || Instant::now() > deadline {
                return heard;
            }
            thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn an_answer_is_as_long_as_it_says_and_comes_in_pieces() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a socket");
        let at = listener.local_addr().expect("bound");
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a call");
            let mut question = [0; 5];
            stream.read_exact(&mut question).expect("a question");
            for piece in [&[0x4e][..], &[0x20, 1, 2], &[3; 19_998]] {
                stream.write_all(piece).expect("room");
            }
            question
        });
        let mut calls = Calls::default();
        calls
            .ask(at, CLIENT, b"abc", Instant::now())
            .expect("asked");
        let heard = hear(&mut calls);
        let answer = [&[1, 2][..], &[3; 19_998]].concat();
        assert_eq!(heard, [(CLIENT, Some(answer))]);
        assert_eq!(server.join().expect("it ended"), [0, 3, b'a', b'b', b'c']);
        assert!(!calls.is_waiting());
    }

    #[test]
    fn calls_are_bounded_in_number_and_time_and_one_that_fails_has_no_answer() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a socket");
        let at = listener.local_addr().expect("bound");
        let (mut calls, now) = (Calls::default(), Instant::now());
        let mut ask = || calls.ask(at, CLIENT, b"abc", now).is_ok();
        assert_eq!((0..100).filter(|_| ask()).count(), CALLS_MAX);
        assert!(calls.hear(now).is_empty());
        assert_eq!(calls.hear(now + PATIENCE).len(), CALLS_MAX);
        // Whoever is called there closes at once.
        calls.ask(at, CLIENT, b"abc", now).expect("asked");
        drop(listener);
        let mut all = Vec::new();
        while all.is_empty() {
            all = hear(&mut calls);
        }
        assert_eq!(all, [(CLIENT, None)]);
    }
}
