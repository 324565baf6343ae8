//! All sockets of all shards of a stack, one after the other, for tools that list them.
//!
//! A shard is locked for a stretch of slots at a time, and other threads may run between
//! two stretches. A socket that comes or goes meanwhile is seen or not; none is seen twice
//! in one slot. One with a member in each shard (`handle`) is seen in the first, with what waits
//! at any of them. Behind them all stand those of stacks in programs ([`stack_tables`](crate::stack_tables)).

use alloc::sync::Arc;
use alloc::vec::{IntoIter, Vec};
use core::net::SocketAddr;

use inet::{ConnectionEntry, Endpoint, SocketEntry, Transport};
use sched::yield_now;

use crate::stack_tables;
use crate::tcp::socket::info_of;
use net::stack::NetStack;
use net::stack::env::Link;
use net::stack::member::{STRETCH, has_members};
use net::stack::waiter::Waiter;
use vfs::socket::TcpInfo;

/// A socket with a name.
#[derive(Clone, Copy, Debug)]
pub struct InetSocket {
    /// Its kind.
    pub transport: Transport,
    /// The number of its file; 0 if no program has one.
    pub number: u64,
    /// Linux's number of its state.
    pub state: u8,
    /// Its own end.
    pub local: SocketAddr,
    /// The other end; nowhere if it has none.
    pub remote: SocketAddr,
    /// Bytes that its program has not read; of a listener, connections to accept.
    pub unread: usize,
    /// Bytes without an acknowledgement; of a listener, how many connections may wait.
    pub unacked: usize,
    /// Bytes that its buffers may hold: for receiving, for sending.
    pub buffers: [u32; 2],
    /// How its connection fares.
    pub info: Option<TcpInfo>,
    /// How its congestion is controlled.
    pub congestion: Option<&'static str>,
}

impl InetSocket {
    fn new(link: &Link, transport: Transport, entry: &ConnectionEntry) -> Self {
        let number = |id| link.number_of(id);
        Self::numbered(entry.socket.map_or(0, number), transport, entry)
    }

    fn numbered(number: u64, transport: Transport, entry: &ConnectionEntry) -> Self {
        let name = |end: Endpoint| SocketAddr::new(end.addr, end.port);
        Self {
            transport,
            number,
            state: entry.state as u8,
            local: name(entry.local),
            remote: name(entry.remote),
            unread: entry.unread,
            unacked: entry.unacked,
            buffers: [0; 2],
            info: None,
            congestion: None,
        }
    }

    fn of(link: &Link, entry: &SocketEntry) -> Self {
        Self::new(link, entry.transport, &entry.connection).with_figures(entry)
    }

    /// One of a stack in a program, whose file has this number.
    pub(crate) fn in_program(number: u64, entry: &SocketEntry) -> Self {
        Self::numbered(number, entry.transport, &entry.connection).with_figures(entry)
    }

    fn with_figures(self, entry: &SocketEntry) -> Self {
        Self {
            buffers: entry.buffers,
            info: entry.info.as_ref().map(info_of),
            congestion: entry.info.map(|info| info.algorithm.name()),
            ..self
        }
    }
}

/// A place among all sockets: those of a shard's slots, then those in TIME_WAIT there, then
/// those of the next shard, and at last those of stacks in programs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Position {
    /// A slot of a shard.
    Slot(u16, usize),
    /// So many of a shard's in TIME_WAIT are behind us.
    Waiting(u16, usize),
    /// A row of a program's table.
    Program(u16, usize),
    /// Behind the last one.
    End,
}

impl Position {
    /// Before the first one.
    pub const START: Self = Self::Slot(0, 0);

    /// Adds the sockets of a stretch from here on; returns where the next one starts.
    fn gather(self, of: &Arc<NetStack>, to: &mut Vec<(Self, InetSocket)>) -> Self {
        match self {
            Self::Slot(shard, slot) => gather_slots(of, shard, slot, to),
            Self::Waiting(shard, skipped) => gather_waiting(of, shard, skipped, to),
            Self::Program(table, row) => gather_program(of, table, row, to),
            Self::End => Self::End,
        }
    }
}

fn gather_program(
    of: &Arc<NetStack>,
    table: u16,
    row: usize,
    to: &mut Vec<(Position, InetSocket)>,
) -> Position {
    let rows = row..row.saturating_add(STRETCH);
    let next = stack_tables::sockets(of, (table, rows), |row, socket| {
        to.push((Position::Program(table, row), socket));
    });
    next.map_or(Position::End, |(table, row)| Position::Program(table, row))
}

fn gather_slots(
    of: &NetStack,
    shard: u16,
    slot: usize,
    to: &mut Vec<(Position, InetSocket)>,
) -> Position {
    let mut with_members = Vec::new();
    let slots = of.with_shard(shard, |stack, link| {
        let stretch = stack.sockets_in(slot..slot + STRETCH);
        for (slot, entry) in stretch.filter(|(_, entry)| shard == 0 || !has_members(entry)) {
            with_members.extend(waiter_with_members(link, &entry).map(|waiter| (to.len(), waiter)));
            to.push((Position::Slot(shard, slot), InetSocket::of(link, &entry)));
        }
        stack.slots()
    });
    for (row, waiter) in with_members {
        if let Some((_, socket)) = to.get_mut(row) {
            add_members(of, &waiter, socket);
        }
    }
    match slot + STRETCH < slots.unwrap_or(0) {
        true => Position::Slot(shard, slot + STRETCH),
        false => Position::Waiting(shard, 0),
    }
}

/// Who waits for a datagram socket that has members. Listeners count what waits together.
fn waiter_with_members(link: &Link, entry: &SocketEntry) -> Option<Arc<Waiter>> {
    let id = entry
        .connection
        .socket
        .filter(|_| entry.transport == Transport::Udp)?;
    let waiter = link.waiter_of(id)?;
    (!waiter.members.is_empty()).then(|| waiter.clone())
}

/// Adds what is queued at the members in other shards. No shard is locked.
fn add_members(of: &NetStack, waiter: &Waiter, socket: &mut InetSocket) {
    for member in waiter.members.iter() {
        let queues = of.with_shard(member.shard, |stack, _| stack.queues(member.id));
        if let Some((unread, unacked)) = queues.flatten() {
            socket.unread += unread;
            socket.unacked += unacked;
        }
    }
}

fn gather_waiting(
    of: &Arc<NetStack>,
    shard: u16,
    skipped: usize,
    to: &mut Vec<(Position, InetSocket)>,
) -> Position {
    let before = to.len();
    of.with_shard(shard, |stack, link| {
        let stretch = stack.time_waits_from(skipped).take(STRETCH);
        to.extend((skipped..).zip(stretch).map(|(place, entry)| {
            let socket = InetSocket::new(link, Transport::Tcp, &entry);
            (Position::Waiting(shard, place), socket)
        }));
    });
    match to.len() - before {
        STRETCH => Position::Waiting(shard, skipped + STRETCH),
        _ if shard + 1 < of.shard_count() => Position::Slot(shard + 1, 0),
        _ => {
            stack_tables::refresh(of);
            Position::Program(0, 0)
        }
    }
}

/// The sockets from a place on, each with its place. Must not run with a spin lock held.
pub struct Sockets {
    of: Arc<NetStack>,
    stretch: IntoIter<(Position, InetSocket)>,
    next: Position,
}

impl Sockets {
    /// Those of a stack, from `position` on.
    pub fn from(of: Arc<NetStack>, position: Position) -> Self {
        Self {
            of,
            stretch: Vec::new().into_iter(),
            next: position,
        }
    }
}

impl Iterator for Sockets {
    type Item = (Position, InetSocket);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(found) = self.stretch.next() {
                return Some(found);
            }
            if self.next == Position::End {
                return None;
            }
            yield_now();
            let mut stretch = Vec::new();
            self.next = self.next.gather(&self.of, &mut stretch);
            self.stretch = stretch.into_iter();
        }
    }
}
