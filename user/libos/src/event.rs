//! What happens to a program's sockets.

use inet::{Endpoint, Error};
use mbuf::Chain;

use crate::socket::{Connection, Listener, UdpSocket};

/// Something happened, and here is the data that came with it.
#[derive(Debug)]
pub enum Event {
    /// A datagram came.
    Datagram {
        /// For this socket.
        socket: UdpSocket,
        /// From there.
        from: Endpoint,
        /// Its bytes.
        data: Chain,
    },
    /// An earlier datagram of the socket's did not arrive: somebody on the way said so.
    Undelivered {
        /// The socket.
        socket: UdpSocket,
        /// Why.
        error: Error,
    },
    /// A peer has connected.
    Accepted {
        /// To this listener.
        listener: Listener,
        /// By this connection.
        connection: Connection,
    },
    /// The peer that we asked has answered.
    Connected {
        /// The connection.
        connection: Connection,
    },
    /// Bytes came. Taking the event opens the window for more.
    Received {
        /// By this connection.
        connection: Connection,
        /// The next ones of its stream, one at least.
        data: Chain,
    },
    /// After a send that did not take all: there is room again.
    Sendable {
        /// The connection.
        connection: Connection,
    },
    /// The peer has sent its last byte; we may still send.
    Ended {
        /// The connection.
        connection: Connection,
    },
    /// The connection is lost, and its name dead.
    Lost {
        /// The connection.
        connection: Connection,
        /// Why.
        error: Error,
    },
}
