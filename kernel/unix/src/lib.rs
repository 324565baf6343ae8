//! Sockets between programs of this machine (unix(7)).
//!
//! Two kinds: [`StreamSocket`] has connections (stream and seqpacket), [`DatagramSocket`]
//! has not. Both receive into an [`inbox`], bytes in pages with envelopes beside them; a
//! sender puts its bytes straight into the receiver's inbox and is charged for them (`outbox`). Names are in `names`,
//! descriptors under way in `rights`; those that nobody can receive `collect` closes.
//!
//! Two connected sockets share a [`connection`]; neither owns the other, so that
//! dropping one tells the other without cycles of references.
//!
//! Lock order: a listener's queue, then an inbox (sleeping), then pollees.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod collect;
mod connection;
mod datagram;
mod drops;
mod inbox;
mod list;
mod listen;
mod names;
mod outbox;
mod paths;
mod rights;
mod stream;

pub use datagram::DatagramSocket;
pub use drops::drops;
pub use stream::StreamSocket;

use alloc::sync::Arc;

use sockets::CommonOptions;
use sync::{Error, Result};
use task::current;
use task::signal::broken_pipe;
use vfs::socket::{
    MessageFlags, OptionName, PeerCredentials, Received, Socket, SocketAddress, SocketType,
    UnixAddress,
};

/// Whether the next byte of a stream is urgent, or was, stored as a C `int`.
const SIOCATMARK: u32 = 0x8905;
/// Bytes that could be received, stored as a C `int`.
const FIONREAD: u32 = 0x541b;
/// Bytes that the peer has not received, stored as a C `int`.
const SIOCOUTQ: u32 = 0x5411;

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

/// The Unix name that a caller gave.
fn unix_name(address: &SocketAddress) -> Result<&UnixAddress> {
    match address {
        SocketAddress::Unix(name) => Ok(name),
        _ => Err(Error::Invalid),
    }
}

/// What a socket with a name is told that is to get the name `wanted`: any one will do for who
/// wants any.
fn already_named(wanted: &UnixAddress) -> Result<()> {
    match wanted {
        UnixAddress::Unnamed => Ok(()),
        _ => Err(Error::Invalid),
    }
}

/// What a send meets on a broken connection; SIGPIPE is raised unless `flags` forbid it.
fn broken(flags: MessageFlags) -> Error {
    match flags.contains(MessageFlags::NOSIGNAL) {
        true => Error::BrokenPipe,
        false => broken_pipe(),
    }
}

/// Leaves a received message the credentials that its receiver wants (SO_PASSCRED): those of a
/// message that was sent before anybody wanted them are nobody's.
fn tell_credentials(options: &CommonOptions, received: &mut Received) {
    let known = received.control.credentials;
    let is_wanted = options.is_set(OptionName::PassCredentials);
    received.control.credentials = is_wanted.then(|| known.unwrap_or(PeerCredentials::UNNOTED));
}

/// Who calls.
fn caller() -> PeerCredentials {
    let thread = current();
    let credentials = thread.credentials.get();
    PeerCredentials {
        pid: thread.process.id(),
        uid: credentials.user.effective,
        gid: credentials.group.effective,
    }
}
