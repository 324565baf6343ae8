//! Answers of many messages, a datagram at a time as the program reads.
//!
//! Here is what a dump holds and how far it is; when it goes on is the reader's (`reading`).

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU32, Ordering};

use netlink::{Dump, Flags, Progress, Writer};

use super::diag;
use super::objects::{address, link, neighbour, route, rule};
use super::protocol::Abi;
use super::requester::Requester;
use net::NetStack;

/// Grows with each change that was told or made by a command; one for all stacks, as a dump that
/// is said to be interrupted is only asked for again.
static CHANGES: AtomicU32 = AtomicU32::new(0);

/// Something has changed: dumps under way are of neither what was nor what is.
pub(super) fn note_change() {
    CHANGES.fetch_add(1, Ordering::Relaxed);
}

fn changes() -> u32 {
    CHANGES.load(Ordering::Relaxed)
}

/// What is dumped, and which of it.
pub(super) enum Query {
    /// Links.
    Links(link::DumpFilter),
    /// Addresses.
    Addresses(address::DumpFilter),
    /// Routes.
    Routes(route::DumpFilter),
    /// Neighbours.
    Neighbours(neighbour::DumpFilter),
    /// Rules.
    Rules(rule::DumpFilter),
    /// Sockets of IP.
    Inet(diag::inet::DumpFilter),
    /// Unix sockets.
    Unix(diag::unix::DumpFilter),
}

/// A dump under way.
pub(super) struct Dumping {
    dump: Dump,
    query: Query,
    /// Objects that the program has.
    taken: usize,
    /// Of all stacks when the dump began.
    changes: u32,
    dialect: &'static Abi,
    stack: Arc<NetStack>,
}

impl Dumping {
    /// The answer to a request.
    pub fn new(requester: &Requester<'_>, query: Query) -> Self {
        Self {
            dump: Dump::new(&requester.header, requester.endpoint.port()),
            dialect: requester.endpoint.dialect,
            stack: requester.stack().clone(),
            query,
            taken: 0,
            changes: changes(),
        }
    }

    /// Adds what fits to a datagram.
    pub fn fill(&mut self, to: &mut Writer<'_>) -> Progress {
        if changes() != self.changes {
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
