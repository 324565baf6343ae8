//! Clients on a link of the server's own: frames and blocks both come without the kernel's being asked.
//!
//! # Problem
//! Who sleeps until the disk has ended, or until a frame has come, pays for being woken: an interrupt, the scheduler, two calls. One client
//! that waits for its answer before it asks again has the server pay that twice for each request.
//!
//! # Idea
//! One loop serves both kinds of rings by turns. When nothing has happened in a turn it looks for what comes without the kernel, as
//! long as that is worth it: for the end of a function's transfer ([`Looks`](sietch_io::storage::Looks)) with more turns, and if the
//! disk has nothing to do for the frames of a card, which [`Queue::poll`] does. What the kernel brings comes sooner to who sleeps. Then
//! both doorbells are asked for, and one poll(2) waits for either: at once, for while the disk is at something its end comes first.

use std::collections::HashMap;
use std::io;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use sietch_io::storage::Look;
use sietch_io::{Connection, Event, Queue};

use crate::client::Client;
use crate::store::Store;

/// So long a sleep lasts before it is seen whether the disk is there still.
const PATIENCE: Duration = Duration::from_secs(1);

/// See the module.
pub struct Server {
    store: Store,
    queue: Queue,
    clients: HashMap<Connection, Peer>,
    /// While the disk's end is looked for.
    look: Option<Look>,
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
            look: None,
        }
    }

    /// Until the log fails or the link is gone.
    ///
    /// Errors: why.
    pub fn serve(&mut self) -> io::Result<()> {
        let mut durable = 0;
        loop {
            self.queue.poll(Some(Duration::ZERO))?;
            let has_heard = self.take_events();
            self.store.turn()?;
            let is_more = self.store.durable() != durable;
            if is_more {
                durable = self.store.durable();
                self.note_end();
            }
            match is_more || has_heard {
                true => self.answer(durable),
                false => self.rest()?,
            }
        }
    }

    /// The disk has ended what was looked for, or slept for.
    fn note_end(&mut self) {
        match self.look.take() {
            Some(_) => self.store.looks().note(true),
            None => self.store.looks().wake(),
        }
    }

    /// Nothing happened: another turn, if the disk's end is to be looked for, or a sleep.
    fn rest(&mut self) -> io::Result<()> {
        let Some(look) = &mut self.look else {
            let is_due = self.store.is_busy() && self.store.are_looks_due();
            self.look = is_due.then(Look::begin);
            return match is_due {
                true => Ok(()),
                false => self.wait(),
            };
        };
        if !look.is_over() {
            return Ok(());
        }
        self.look = None;
        self.store.looks().note(false);
        self.wait()
    }

    /// Until a frame comes, or the disk has ended something.
    fn wait(&mut self) -> io::Result<()> {
        if !self.store.is_busy() {
            return self.queue.poll(None);
        }
        if !self.store.arm() {
            return Ok(());
        }
        self.store.note_sleep();
        let most = self.queue.arm_at_once()?;
        if most == Some(Duration::ZERO) {
            return Ok(());
        }
        let most = Timespec::try_from(most.unwrap_or(PATIENCE).min(PATIENCE)).ok();
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
