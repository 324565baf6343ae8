//! What a program has of a queue's sockets: names, each of one kind.

use inet::SocketId;

/// A datagram socket of a queue.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct UdpSocket(pub(crate) SocketId);

/// A socket of a queue that peers connect to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Listener(pub(crate) SocketId);

/// A connection of a queue.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Connection(pub(crate) SocketId);

impl Connection {
    /// A small number that no other connection of the queue has while this one lives: for a
    /// program's own tables.
    pub fn index(self) -> usize {
        self.0.index()
    }
}
