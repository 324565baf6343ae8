//! Clients on a link of the server's own: frames and blocks both come without the kernel's being asked.
//!
//! # Problem
//! Who sleeps until the disk has ended, or until a frame has come, pays for being woken: an interrupt, the scheduler, two calls. One client
//! that waits for its answer before it asks again has the server pay that twice for each request.
//!
//! # Idea
//! One loop looks at both kinds of rings by turns. Nothing happened for [`PATIENCE_NANOS`]: both doorbells are asked for, and one
//! poll(2) waits for either. So a server that nobody asks sleeps, and one that is asked looks, for no longer than a request takes.

use std::collections::HashMap;
use std::io;
use std::time::Duration;

use rt::Clock;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use sietch_io::{Connection, Event, Queue};

use crate::client::Client;
use crate::store::Store;

/// What a client on the same machine or in its rack takes to ask again, and a disk of flash to write.
const PATIENCE_NANOS: u64 = 200_000;

/// See the module.
pub struct Server {
    store: Store,
    queue: Queue,
    clients: HashMap<Connection, Peer>,
}

/// A connection.
#[derive(Default)]
struct Peer {
    client: Client,
    /// It asks for nothing more.
    is_ended: bool,
}

impl Server {
    /// Clients will come by this queue.
    pub fn new(store: Store, queue: Queue) -> Self {
        Self {
            store,
            queue,
            clients: HashMap::new(),
        }
    }

    /// Until the log fails or the link is gone.
    ///
    /// Errors: why.
    pub fn serve(&mut self) -> io::Result<()> {
        let mut durable = 0;
        let mut clock = Clock::new();
        let mut calm_since = clock.now();
        loop {
            self.queue.poll(Some(Duration::ZERO))?;
            let has_heard = self.take_events();
            self.store.turn()?;
            let is_more = self.store.durable() != durable;
            if is_more || has_heard {
                durable = self.store.durable();
                self.answer(durable);
                calm_since = clock.now();
            } else if clock.now().saturating_sub(calm_since) >= PATIENCE_NANOS {
                self.wait()?;
                calm_since = clock.now();
            }
        }
    }

    /// Until a frame comes, or the disk has ended something.
    fn wait(&mut self) -> io::Result<()> {
        if !self.store.is_busy() {
            return self.queue.poll(None);
        }
        if !self.store.arm() {
            return Ok(());
        }
        let most = self.queue.arm()?;
        if most == Some(Duration::ZERO) {
            return Ok(());
        }
        let most = most.and_then(|most| Timespec::try_from(most).ok());
        let doorbell = self.store.doorbell();
        let mut files = [
            PollFd::new(&doorbell, PollFlags::IN),
            PollFd::new(&self.queue, PollFlags::IN),
        ];
        match poll(&mut files, most.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether there was any.
    fn take_events(&mut self) -> bool {
        let mut has_heard = false;
        while let Some(event) = self.queue.receive() {
            has_heard = true;
            self.handle(event);
        }
        has_heard
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Accepted { connection, .. } => {
                self.clients.insert(connection, Peer::default());
            }
            Event::Received { connection, data } => {
                let Some(peer) = self.clients.get_mut(&connection) else {
                    return;
                };
                let received = peer.client.receive(&mut self.store, data.slices());
                if received.is_err() {
                    self.end(connection);
                }
            }
            Event::Ended { connection } => {
                if let Some(peer) = self.clients.get_mut(&connection) {
                    peer.is_ended = true;
                }
            }
            Event::Lost { connection, .. } => {
                self.clients.remove(&connection);
            }
            // All are answered after each round of events.
            Event::Sendable { .. } => {}
            Event::Datagram { .. } | Event::Undelivered { .. } | Event::Connected { .. } => {}
        }
    }

    fn end(&mut self, connection: Connection) {
        self.clients.remove(&connection);
        self.queue.close(connection).ok();
    }

    /// Says what may be said, and lets those go who have heard all.
    fn answer(&mut self, durable: u64) {
        let mut over = Vec::new();
        for (connection, peer) in &mut self.clients {
            let answered = loop {
                let answered = peer.client.answer(&mut self.store, durable);
                send(&mut self.queue, *connection, &mut peer.client.unsent);
                if answered.is_err() || !peer.client.may_go_on() {
                    break answered;
                }
            };
            if answered.is_err() || peer.is_ended && peer.client.is_idle() {
                over.push(*connection);
            }
        }
        for connection in over {
            self.end(connection);
        }
    }
}

/// As much as there is room for; an event follows when there is more.
fn send(queue: &mut Queue, connection: Connection, unsent: &mut Vec<u8>) {
    while !unsent.is_empty() {
        match queue.send_bytes(connection, unsent) {
            Ok(sent) => drop(unsent.drain(..sent)),
            Err(_) => return,
        }
    }
}
