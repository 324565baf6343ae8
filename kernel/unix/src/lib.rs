//! Sockets between programs of this machine (unix(7)).
//!
//! Two kinds: [`StreamSocket`] has connections (stream and seqpacket), [`DatagramSocket`]
//! has not. Below them stands what both have, and what knows a socket of either kind only as an
//! `endpoint`:
//!
//! - `inbox` has what was received, bytes in pages with descriptors and credentials beside them; a
//!   sender puts its bytes straight into the receiver's inbox and is charged for them (`outbox`).
//! - `names` finds sockets by name, `list` by number.
//! - `rights` has the descriptors under way; those that nobody can receive its `collect` closes.
//!
//! Two connected sockets share a `stream::connection`; neither owns the other, so that
//! dropping one tells the other without cycles of references.
//!
//! Lock order: a listener's queue, then an inbox (sleeping), then pollees.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod datagram;
mod drops;
mod endpoint;
mod inbox;
mod list;
mod names;
mod outbox;
mod requests;
mod rights;
mod stream;

pub use datagram::DatagramSocket;
pub use drops::drops;
pub use stream::StreamSocket;

use alloc::sync::Arc;

use sync::Result;
use vfs::socket::{Socket, SocketType};

/// Shows all Unix sockets to tools; once at boot.
pub fn init() {
    sockets::register_unix_sockets(list::next_socket);
}

/// A socket without name or peer.
pub fn create(kind: SocketType) -> Result<Arc<dyn Socket>> {
    match kind {
        SocketType::Stream | SocketType::SeqPacket => Ok(StreamSocket::new(kind)),
        // Linux: there is nothing rawer than a datagram here (unix(7)).
        SocketType::Datagram | SocketType::Raw => Ok(DatagramSocket::new()),
    }
}

/// Two sockets connected to each other (socketpair).
pub fn create_pair(kind: SocketType) -> Result<[Arc<dyn Socket>; 2]> {
    match kind {
        SocketType::Stream | SocketType::SeqPacket => {
            let [a, b] = StreamSocket::pair(kind);
            Ok([a, b])
        }
        SocketType::Datagram | SocketType::Raw => {
            let [a, b] = DatagramSocket::pair();
            Ok([a, b])
        }
    }
}
