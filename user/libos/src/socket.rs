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

/// Names as numbers, for programs that are written in another language.
macro_rules! as_numbers {
    ($($name:ident),+) => { $(
        impl $name {
            /// The name as a number: its index in the lower half.
            pub fn to_bits(self) -> u64 {
                self.0.to_bits()
            }

            /// The name of a number. One that is dead, or was never given out, is refused by the calls that it is
            /// passed to.
            pub fn from_bits(bits: u64) -> Self {
                Self(SocketId::from_bits(bits))
            }
        }
    )+ };
}

as_numbers!(UdpSocket, Listener, Connection);
