//! A key-value server whose answers can be relied on: `SET` is answered when a loss of power would leave it.
//!
//!     durable_kv 6379 /dev/vdb
//!
//! It speaks Redis' protocol (`resp`: `SET`, `GET`, `DEL`, `DBSIZE`, `PING`) over the kernel's sockets. Keys and values are in an ordered map on
//! a log (`store`). All that clients ask for in one round goes to the disk at once, and one flush answers them all: nobody
//! waits for a timer, and who is alone waits for one write.

mod resp;
mod store;

use std::collections::VecDeque;
use std::env;
use std::error::Error;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::ExitCode;

use rustix::event::{PollFd, PollFlags, poll};

use resp::Command;
use store::{Reply, Store};

const READ_BYTES: usize = 64 * 1024;
/// Who has more answers waiting is not read from.
const REPLIES_MAX: usize = 4096;
/// Bytes of requests that are not whole.
const RECEIVED_BYTES_MAX: usize = 4 << 20;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().collect();
    let [_, port, area] = arguments.as_slice() else {
        eprintln!("durable_kv PORT AREA");
        return ExitCode::from(2);
    };
    match serve(port, area.as_ref()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("durable_kv: {area}: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Until the log or the listener fails.
fn serve(port: &str, area: &Path) -> Result<(), Box<dyn Error>> {
    let mut store = Store::open(area)?;
    let listener = TcpListener::bind(("0.0.0.0", port.parse()?))?;
    listener.set_nonblocking(true)?;
    println!("serving {} keys", store.len());
    io::stdout().flush()?;
    let mut clients: Vec<Client> = Vec::new();
    let mut bytes = vec![0; READ_BYTES];
    loop {
        if wait(&listener, &mut clients, &mut store)? {
            accept(&listener, &mut clients)?;
        }
        clients.retain_mut(|client| client.receive(&mut store, &mut bytes).is_ok());
        // Who all wait for the disk ask for nothing meanwhile.
        match clients.iter().all(Client::waits_for_disk) {
            true => store.turn_and_wait()?,
            false => store.turn()?,
        }
        let durable = store.durable();
        clients.retain_mut(|client| client.answer(durable).is_ok());
    }
}

/// Until somebody asks, or something has become durable: notes who has asked. Whether somebody wants to be a client.
fn wait(listener: &TcpListener, clients: &mut [Client], store: &mut Store) -> io::Result<bool> {
    if !store.arm() {
        return Ok(false);
    }
    let doorbell = store.doorbell();
    let mut files = vec![
        PollFd::new(&doorbell, PollFlags::IN),
        PollFd::new(listener, PollFlags::IN),
    ];
    for client in clients.iter() {
        let mut wanted = PollFlags::empty();
        wanted.set(PollFlags::IN, client.replies.len() < REPLIES_MAX);
        wanted.set(PollFlags::OUT, !client.unsent.is_empty());
        files.push(PollFd::from_borrowed_fd(client.stream.as_fd(), wanted));
    }
    match poll(&mut files, None) {
        Ok(_) => {}
        Err(rustix::io::Errno::INTR) => return Ok(false),
        Err(error) => return Err(error.into()),
    }
    let asks = |file: &PollFd<'_>| !(file.revents() - PollFlags::OUT).is_empty();
    let asked: Vec<bool> = files.iter().skip(1).map(asks).collect();
    for (client, has_asked) in clients.iter_mut().zip(&asked[1..]) {
        client.has_asked = *has_asked;
    }
    Ok(asked[0])
}

fn accept(listener: &TcpListener, clients: &mut Vec<Client>) -> io::Result<()> {
    loop {
        match listener.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(true)?;
                stream.set_nodelay(true)?;
                clients.push(Client::new(stream));
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}

/// A connection.
struct Client {
    stream: TcpStream,
    /// Something can be read.
    has_asked: bool,
    /// The beginning of a request.
    received: Vec<u8>,
    /// In the order of the requests: the first waits until it is durable, all others for it.
    replies: VecDeque<Reply>,
    unsent: Vec<u8>,
}

impl Client {
    fn waits_for_disk(&self) -> bool {
        !self.replies.is_empty() && self.unsent.is_empty()
    }

    fn new(stream: TcpStream) -> Self {
        Self {
            stream,
            has_asked: true,
            received: Vec::new(),
            replies: VecDeque::new(),
            unsent: Vec::new(),
        }
    }

    /// Executes what has come. An error ends the connection.
    fn receive(&mut self, store: &mut Store, bytes: &mut [u8]) -> io::Result<()> {
        if self.replies.len() >= REPLIES_MAX || !std::mem::take(&mut self.has_asked) {
            return Ok(());
        }
        match self.stream.read(bytes) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(count) => self.received.extend(&bytes[..count]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error),
        }
        let mut done = 0;
        while let Some((words, len)) = resp::request(&self.received[done..])? {
            let reply = store.execute(&Command::of(&words));
            self.replies.push_back(reply);
            done += len;
        }
        self.received.drain(..done);
        match self.received.len() <= RECEIVED_BYTES_MAX {
            true => Ok(()),
            false => Err(ErrorKind::InvalidData.into()),
        }
    }

    /// Sends what may be said.
    fn answer(&mut self, durable: u64) -> io::Result<()> {
        while let Some(reply) = self.replies.pop_front_if(|reply| reply.needs <= durable) {
            self.unsent.extend(reply.bytes);
        }
        while !self.unsent.is_empty() {
            match self.stream.write(&self.unsent) {
                Ok(count) => drop(self.unsent.drain(..count)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
