//! All sockets of the stack, one after the other, for tools that list them.
//!
//! The stack is locked for a stretch of slots at a time, and other threads may run between
//! two stretches. A socket that comes or goes meanwhile is seen or not; none is seen twice
//! in one slot.

use alloc::vec::{IntoIter, Vec};
use core::net::SocketAddr;

use inet::{ConnectionEntry, Endpoint, SocketEntry, SocketId, Transport};

use super::shard::with_stack;
use super::tcp_socket::info_of;
use crate::sched::yield_now;
use crate::socket::TcpInfo;

/// Slots that are looked at with the stack locked.
const STRETCH: usize = 64;

/// Sockets' files are numbered from here on; those of other families never get that far.
const NUMBERS: u64 = 1 << 30;

/// The number of the file that a socket is; also in /proc/net and for `ss -e`.
pub fn number_of(socket: SocketId) -> u64 {
    NUMBERS + socket.index() as u64
}

/// A socket with a name.
#[derive(Clone, Copy, Debug)]
pub struct InetSocket {
    /// Its kind.
    pub transport: Transport,
    /// The number of its file; 0 if no program has one.
    pub number: u64,
    /// Linux' number of its state.
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
    fn new(transport: Transport, entry: &ConnectionEntry) -> Self {
        let name = |end: Endpoint| SocketAddr::new(end.addr, end.port);
        Self {
            transport,
            number: entry.socket.map_or(0, number_of),
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

    fn of(entry: &SocketEntry) -> Self {
        Self {
            buffers: entry.buffers,
            info: entry.info.as_ref().map(info_of),
            congestion: entry.info.map(|info| info.algorithm.name()),
            ..Self::new(entry.transport, &entry.connection)
        }
    }
}

/// A place among all sockets: those in slots come first, then those in TIME_WAIT.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Position {
    /// A slot.
    Slot(usize),
    /// So many in TIME_WAIT are behind us.
    Waiting(usize),
    /// Behind the last one.
    End,
}

impl Position {
    /// Before the first one.
    pub const START: Self = Self::Slot(0);

    /// Adds the sockets of a stretch from here on; returns where the next one starts.
    fn gather(self, to: &mut Vec<(Self, InetSocket)>) -> Self {
        match self {
            Self::Slot(slot) => gather_slots(slot, to),
            Self::Waiting(skipped) => gather_waiting(skipped, to),
            Self::End => Self::End,
        }
    }
}

fn gather_slots(slot: usize, to: &mut Vec<(Position, InetSocket)>) -> Position {
    let slots = with_stack(|stack, _| {
        let stretch = stack.sockets_in(slot..slot + STRETCH);
        to.extend(stretch.map(|(slot, entry)| (Position::Slot(slot), InetSocket::of(&entry))));
        stack.slots()
    });
    match slot + STRETCH < slots.unwrap_or(0) {
        true => Position::Slot(slot + STRETCH),
        false => Position::Waiting(0),
    }
}

fn gather_waiting(skipped: usize, to: &mut Vec<(Position, InetSocket)>) -> Position {
    let before = to.len();
    with_stack(|stack, _| {
        let stretch = stack.time_waits_from(skipped).take(STRETCH);
        to.extend((skipped..).zip(stretch).map(|(place, entry)| {
            let socket = InetSocket::new(Transport::Tcp, &entry);
            (Position::Waiting(place), socket)
        }));
    });
    match to.len() - before {
        STRETCH => Position::Waiting(skipped + STRETCH),
        _ => Position::End,
    }
}

/// The sockets from a place on, each with its place. Must not run with a spin lock held.
pub struct Sockets {
    stretch: IntoIter<(Position, InetSocket)>,
    next: Position,
}

impl Sockets {
    /// Starts at `position`.
    pub fn from(position: Position) -> Self {
        Self {
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
            self.next = self.next.gather(&mut stretch);
            self.stretch = stretch.into_iter();
        }
    }
}
