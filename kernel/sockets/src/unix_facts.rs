//! Unix sockets as tools see them, and where their list is: `unix` keeps it and stands above
//! those who ask.

use mach::sync::Once;

use vfs::socket::{SocketType, UnixAddress};

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

/// Finds the socket with the next number after that.
type Next = fn(u64) -> Option<UnixFacts>;

/// Said once at boot by who keeps Unix sockets.
static NEXT: Once<Next> = Once::new();

/// Says who keeps the list; once at boot.
pub fn register_unix_sockets(next: Next) {
    NEXT.call_once(|| next);
}

/// The Unix socket with the next number after that.
pub fn next_unix_socket(after: u64) -> Option<UnixFacts> {
    NEXT.get().and_then(|next| next(after))
}
