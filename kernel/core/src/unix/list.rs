//! All Unix sockets in order of their numbers, for tools.

use alloc::collections::BTreeMap;
use core::ops::Bound;

use mach::sync::Spin;

use super::names::Node;
use crate::socket::{SocketType, UnixAddress};

static ALL: Spin<BTreeMap<u64, Node>> = Spin::new(BTreeMap::new());

/// What a socket is doing; the numbers are Linux's own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UnixState {
    /// It has a peer.
    Connected = 1,
    /// It has none.
    Unconnected = 7,
    /// Others can connect to it.
    Listening = 10,
}

/// A socket as tools see it.
pub struct UnixFacts {
    /// The number of its file.
    pub number: u64,
    /// How it delivers.
    pub kind: SocketType,
    /// What it is doing.
    pub state: UnixState,
    /// Its name.
    pub name: UnixAddress,
    /// The number of its peer's file.
    pub peer: Option<u64>,
    /// Bytes that wait to be received; of a listener, connections to accept.
    pub waiting: usize,
    /// Bytes that its peer has not received; of a listener, connections that may wait.
    pub sent: usize,
}

/// A socket was made.
pub(super) fn enter(number: u64, socket: Node) {
    ALL.lock().insert(number, socket);
}

/// A socket is gone.
pub(super) fn leave(number: u64) {
    ALL.lock().remove(&number);
}

/// The socket with the next number after that.
pub fn next_socket(after: u64) -> Option<UnixFacts> {
    let mut last = after;
    loop {
        let behind = (Bound::Excluded(last), Bound::Unbounded);
        let (number, node) = {
            let all = ALL.lock();
            let (number, node) = all.range(behind).next()?;
            (*number, node.clone())
        };
        let facts = match node {
            Node::Stream(socket) => socket.upgrade().map(|socket| socket.facts()),
            Node::Datagram(socket) => socket.upgrade().map(|socket| socket.facts()),
        };
        // One without facts is just going.
        if facts.is_some() {
            return facts;
        }
        last = number;
    }
}
