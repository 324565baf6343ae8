//! Answers of many messages, a datagram at a time as the program reads.
//!
//! A datagram is as large as the largest buffer that the program has read into, within
//! bounds (Linux does so too: old programs read a page and take nothing cut).

use alloc::sync::Arc;
use core::sync::atomic::Ordering;

use netlink::{Dump, Flags, Header, Progress, Writer};

use super::queue::Datagram;
use super::{Dialect, NetlinkSocket, address, answer, changes, diag, link};
use super::{neighbour, route, rule, unix_diag};
use net::NetStack;

/// Smallest room for a datagram: what Linux begins with.
const ROOM_MIN: usize = 3776;
/// Largest room for a datagram.
const ROOM_MAX: usize = 32 << 10;

/// What is dumped, and which of it.
pub(super) enum Query {
    /// Links.
    Links(link::Wanted),
    /// Addresses.
    Addresses(address::Wanted),
    /// Routes.
    Routes(route::Wanted),
    /// Neighbours.
    Neighbours(neighbour::Wanted),
    /// Rules.
    Rules(rule::Wanted),
    /// Sockets of IP.
    Inet(diag::Wanted),
    /// Unix sockets.
    Unix(unix_diag::Wanted),
}

/// A dump under way.
pub(super) struct Dumping {
    dump: Dump,
    query: Query,
    /// Objects that the program has.
    taken: usize,
    /// Of what is dumped when the dump began.
    version: u32,
    dialect: &'static Dialect,
    stack: Arc<NetStack>,
}

impl Dumping {
    /// The answer to a request of this header.
    pub fn new(request: &Header, socket: &NetlinkSocket, query: Query) -> Self {
        Self {
            dump: Dump::new(request, socket.port()),
            dialect: socket.dialect,
            stack: socket.stack.clone(),
            query,
            taken: 0,
            version: changes::version(),
        }
    }

    /// Adds what fits to a datagram.
    fn fill(&mut self, to: &mut Writer<'_>) -> Progress {
        if changes::version() != self.version {
            self.dump.flags = self.dump.flags | Flags::DUMP_INTERRUPTED;
        }
        let (dump, from, stack) = (&self.dump, self.taken, &self.stack);
        let progress = match &mut self.query {
            Query::Links(wanted) => wanted.fill(stack, dump, from, to),
            Query::Addresses(wanted) => wanted.fill(stack, dump, from, to),
            Query::Routes(wanted) => wanted.fill(stack, dump, from, to),
            Query::Neighbours(wanted) => wanted.fill(stack, dump, from, to),
            Query::Rules(wanted) => wanted.fill(dump, from, to),
            Query::Inet(wanted) => wanted.fill(stack, dump, self.dialect, to),
            Query::Unix(wanted) => wanted.fill(dump, to),
        };
        if let Progress::More { taken } = progress {
            self.taken += taken;
        }
        progress
    }
}

impl NetlinkSocket {
    /// Queues the dump's next datagram; false if there is no dump.
    pub(super) fn go_on_dumping(&self) -> bool {
        let mut place = self.dump.lock();
        // Another reader may have been faster.
        if !self.queue.lock().is_empty() {
            return true;
        }
        let Some(dumping) = place.as_mut() else {
            return false;
        };
        let room = self.room_seen.load(Ordering::Relaxed);
        let mut progress = Progress::TooLarge;
        let mut produced = self.produce(dumping, room.clamp(ROOM_MIN, ROOM_MAX), &mut progress);
        if progress == Progress::TooLarge {
            produced = self.produce(dumping, ROOM_MAX, &mut progress);
        }
        if !matches!(progress, Progress::More { .. }) {
            *place = None;
        }
        drop(place);
        match produced {
            Some(datagram) => self.push(datagram),
            None => self.lose(),
        }
        true
    }

    fn produce(
        &self,
        dumping: &mut Dumping,
        room: usize,
        progress: &mut Progress,
    ) -> Option<Datagram> {
        let bytes = answer::datagram(room, |to| {
            *progress = dumping.fill(to);
            Ok(())
        });
        let bytes = bytes.ok().filter(|bytes| !bytes.is_empty())?;
        Some(Datagram { bytes, group: 0 })
    }

    /// An answer was lost: there was no memory for it.
    pub(super) fn lose(&self) {
        self.queue.lock().lose();
        self.pollee.notify(sync::poll::Events::ERR);
    }
}
