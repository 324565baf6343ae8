//! A key-value server that speaks memcached's text protocol, over UDP and TCP, on a link of its own:
//!
//!     kv vnic0 10.0.2.61/24
//!
//! `store` has the values and the commands; here requests come in and answers go out. A connection's
//! bytes are kept until they are whole requests. While its peer takes no answers none of its
//! requests is executed; one that goes on asking then is closed.

mod store;

use std::collections::HashMap;
use std::env;
use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;

use sietch_io::{Chain, Connection, Endpoint, Event, Queue, QueueConfig, UdpSocket};

use store::{Outcome, Store};

const PORT: u16 = 11211;
const BACKLOG: usize = 1024;
/// In front of a request by UDP: its number, its place among datagrams, how many there are, zero.
const UDP_HEADER_BYTES: usize = 8;
/// With more answers waiting no request is executed.
const UNSENT_BYTES_MAX: usize = 256 * 1024;
/// Requests that wait: a whole one, and more.
const RECEIVED_BYTES_MAX: usize = 4 << 20;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().collect();
    let [_, link, address] = arguments.as_slice() else {
        eprintln!("kv LINK ADDRESS/PREFIX");
        return ExitCode::from(2);
    };
    match serve(link, address) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("kv: {link}: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Until the link is gone.
fn serve(link: &str, address: &str) -> Result<(), Box<dyn Error>> {
    let mut queue = Queue::open(&QueueConfig::new(link, address.parse()?))?;
    queue.bind(PORT)?;
    queue.listen(PORT, BACKLOG)?;
    println!("serving");
    io::stdout().flush()?;
    let mut server = Server {
        queue,
        store: Store::default(),
        clients: HashMap::new(),
    };
    loop {
        server.queue.poll(None)?;
        while let Some(event) = server.queue.receive() {
            server.handle(event);
        }
    }
}

/// What a connection has under way.
#[derive(Default)]
struct Client {
    /// The beginning of a request.
    received: Vec<u8>,
    /// Answers that there was no room for.
    unsent: Vec<u8>,
    is_ended: bool,
}

struct Server {
    queue: Queue,
    store: Store,
    clients: HashMap<Connection, Client>,
}

impl Server {
    fn handle(&mut self, event: Event) {
        match event {
            Event::Datagram { socket, from, data } => self.answer(socket, from, &data),
            Event::Accepted { connection, .. } => {
                self.clients.insert(connection, Client::default());
            }
            Event::Received { connection, data } => self.received(connection, &data),
            Event::Sendable { connection } => self.go_on(connection),
            Event::Ended { connection } => {
                if let Some(client) = self.clients.get_mut(&connection) {
                    client.is_ended = true;
                }
                self.go_on(connection);
            }
            Event::Lost { connection, .. } => {
                self.clients.remove(&connection);
            }
            Event::Connected { .. } | Event::Undelivered { .. } => {}
        }
    }

    /// One request, one answer, each in one datagram.
    fn answer(&mut self, socket: UdpSocket, from: Endpoint, data: &Chain) {
        let request = bytes_of(data);
        let Some((header, request)) = request.split_first_chunk::<UDP_HEADER_BYTES>() else {
            return;
        };
        let [number_high, number_low, ..] = *header;
        let mut answer = vec![number_high, number_low, 0, 0, 0, 1, 0, 0];
        if let Outcome::Done { .. } = self.store.execute(request, &mut answer) {
            // One that does not fit a datagram, or finds no memory, is lost as datagrams are.
            self.queue.send_bytes_to(socket, from, &answer).ok();
        }
    }

    fn received(&mut self, connection: Connection, data: &Chain) {
        if let Some(client) = self.clients.get_mut(&connection) {
            client.received.extend(data.slices().flatten());
        }
        self.go_on(connection);
    }

    /// Executes what is whole, sends what there is room for, and closes when all is said.
    fn go_on(&mut self, connection: Connection) {
        let Some(client) = self.clients.get_mut(&connection) else {
            return;
        };
        let is_open = client.go_on(&mut self.store, &mut self.queue, connection);
        if !is_open || client.is_ended && client.unsent.is_empty() {
            self.clients.remove(&connection);
            self.queue.close(connection).ok();
        }
    }
}

impl Client {
    /// False if the peer does not speak the protocol, or leaves.
    fn go_on(&mut self, store: &mut Store, queue: &mut Queue, connection: Connection) -> bool {
        loop {
            let done = self.execute(store);
            self.send(queue, connection);
            match done {
                None => return false,
                Some(done) if done != 0 && self.unsent.is_empty() => {}
                Some(_) => return self.received.len() <= RECEIVED_BYTES_MAX,
            }
        }
    }

    /// How many bytes of requests were executed; `None` when it is time to close.
    fn execute(&mut self, store: &mut Store) -> Option<usize> {
        let mut done = 0;
        while self.unsent.len() <= UNSENT_BYTES_MAX {
            match store.execute(&self.received[done..], &mut self.unsent) {
                Outcome::Done { bytes } => done += bytes,
                Outcome::Partial => break,
                Outcome::Quit => return None,
            }
        }
        self.received.drain(..done);
        Some(done)
    }

    fn send(&mut self, queue: &mut Queue, connection: Connection) {
        while !self.unsent.is_empty() {
            match queue.send_bytes(connection, &self.unsent) {
                Ok(sent) => drop(self.unsent.drain(..sent)),
                // There is no room, or nobody to send to: an event follows.
                Err(_) => return,
            }
        }
    }
}

fn bytes_of(data: &Chain) -> Vec<u8> {
    data.slices().flatten().copied().collect()
}
