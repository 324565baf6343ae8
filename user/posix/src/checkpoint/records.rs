//! What is written of a host.

use inet::{Endpoint, Options, PastConnection, TcpSnapshot};

use crate::encoding::{Encode, structures};

/// The first of its bytes: what they are, and how they are laid out. A library that writes others says another
/// number, and may read several.
pub(crate) const FORMAT: u64 = u64::from_le_bytes(*b"sietch\x00\x02");

/// Everything.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Checkpoint {
    /// The program's address on the link.
    pub host: Endpoint,
    pub sockets: Vec<SocketRecord>,
    /// Connections without a socket, whose last bytes are on their way.
    pub orphans: Vec<TcpSnapshot>,
    pub sets: Vec<SetRecord>,
    /// Others have had queues of the link.
    pub is_shared: bool,
}

/// A socket, under all its numbers.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct SocketRecord {
    pub numbers: Vec<u32>,
    pub is_stream: bool,
    pub is_nonblocking: bool,
    pub is_outcome_untold: bool,
    pub is_settled: bool,
    pub serves: bool,
    /// Limits of a wait, for receiving and for sending.
    pub timeouts: (Option<u64>, Option<u64>),
    pub options: Options,
    pub state: SocketState,
}

/// Where a socket stands.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum SocketState {
    /// It has no peer, and perhaps a name.
    Unconnected(Option<Endpoint>),
    /// It waits for peers: its name, how many may wait, and those that do.
    Listening((Endpoint, u32), Vec<TcpSnapshot>),
    /// It has asked a peer that has not answered.
    Connecting((Endpoint, Endpoint)),
    /// A stream.
    Connected(TcpSnapshot),
    /// A stream that is over.
    Past(PastConnection),
    /// Datagrams to and from one peer.
    Datagrams((Endpoint, Endpoint)),
}

/// Our part of an epoll set.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct SetRecord {
    pub numbers: Vec<u32>,
    pub members: Vec<Member>,
}

/// A watched socket.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Member {
    /// The number under which it was added, which may be closed since.
    pub number: u32,
    /// Its place among the sockets.
    pub socket: u32,
    pub interest: u32,
    pub trigger: u32,
    pub data: u64,
}

structures! {
    Checkpoint { host, sockets, orphans, sets, is_shared }
    SocketRecord {
        numbers, is_stream, is_nonblocking, is_outcome_untold, is_settled, serves, timeouts, options,
        state,
    }
    SetRecord { numbers, members }
    Member { number, socket, interest, trigger, data }
}

impl Encode for SocketState {
    fn put(&self, to: &mut Vec<u8>) {
        match self {
            Self::Unconnected(local) => (0_u8, *local).put(to),
            Self::Listening(listener, waiting) => {
                (1_u8, *listener).put(to);
                waiting.put(to);
            }
            Self::Connecting(ends) => (2_u8, *ends).put(to),
            Self::Connected(snapshot) => {
                3_u8.put(to);
                snapshot.put(to);
            }
            Self::Past(past) => {
                4_u8.put(to);
                past.put(to);
            }
            Self::Datagrams(ends) => (5_u8, *ends).put(to),
        }
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        Some(match u8::take(from)? {
            0 => Self::Unconnected(Encode::take(from)?),
            1 => Self::Listening(Encode::take(from)?, Encode::take(from)?),
            2 => Self::Connecting(Encode::take(from)?),
            3 => Self::Connected(Encode::take(from)?),
            4 => Self::Past(Encode::take(from)?),
            5 => Self::Datagrams(Encode::take(from)?),
            _ => return None,
        })
    }
}

impl Checkpoint {
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        FORMAT.put(&mut bytes);
        self.put(&mut bytes);
        bytes
    }

    /// `None` for bytes of another format, and for those that are none of it.
    pub fn decode(mut bytes: &[u8]) -> Option<Self> {
        let is_known = u64::take(&mut bytes)? == FORMAT;
        let checkpoint = is_known.then(|| Self::take(&mut bytes))??;
        bytes.is_empty().then_some(checkpoint)
    }
}

/// What has come over.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Restored {
    /// Streams, those included that wait to be accepted or have been let go.
    pub connections: usize,
    /// The numbers of sockets.
    pub sockets: Vec<u32>,
    /// The numbers of sets.
    pub sets: Vec<u32>,
}
