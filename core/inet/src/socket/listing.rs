//! Sockets for tools that list them, a stretch of slots at a time.

use core::ops::Range;

use crate::addr::{Endpoint, SocketId, Transport};
use crate::stack::Stack;
use crate::table::Socket;
use crate::tcp::{ConnectionEntry, State, TcpInfo};

/// A socket that has a name, as tools see it.
#[derive(Clone, Copy, Debug)]
pub struct SocketEntry {
    /// Its kind.
    pub transport: Transport,
    /// Its ends and queues. Of a datagram socket the state says whether it has a peer:
    /// established or closed.
    pub connection: ConnectionEntry,
    /// How its connection fares.
    pub info: Option<TcpInfo>,
    /// Bytes that its buffers may hold: for receiving, for sending.
    pub buffers: [u32; 2],
}

impl Stack {
    /// How many slots for sockets there are.
    pub fn slots(&self) -> usize {
        self.sockets.slots()
    }

    /// The sockets with a name in some slots, each with its slot.
    pub fn sockets_in(
        &self,
        slots: Range<usize>,
    ) -> impl Iterator<Item = (usize, SocketEntry)> + '_ {
        let first = slots.start;
        let sockets = self.sockets.iter().skip(first).take(slots.len());
        (first..)
            .zip(sockets)
            .filter_map(|(slot, socket)| Some((slot, Self::socket_entry(socket)?)))
    }

    /// Bytes that a socket's program has not read, and those that have not left, as its entry
    /// tells them; `None` if it has no entry.
    pub fn queues(&self, id: SocketId) -> Option<(usize, usize)> {
        let entry = Self::socket_entry(self.sockets.get(id).ok()?)?.connection;
        Some((entry.unread, entry.unacked))
    }

    fn socket_entry(socket: &Socket) -> Option<SocketEntry> {
        let options = match socket {
            Socket::Free { .. } => return None,
            Socket::Tcp(tcb) => &tcb.options,
            Socket::Listener(listener) => &listener.options,
            Socket::Udp(socket) => &socket.options,
            Socket::Frozen(frozen) => &frozen.snapshot.options,
        };
        let (transport, connection) = match socket {
            Socket::Udp(socket) => (Transport::Udp, socket.entry()),
            socket => (Transport::Tcp, Self::entry_of(socket)?),
        };
        let is_named = match transport {
            Transport::Tcp => connection.state != State::Closed,
            Transport::Udp => connection.local.port != 0,
        };
        let info = match socket {
            Socket::Tcp(tcb) => Some(tcb.info()),
            Socket::Frozen(frozen) => Some(frozen.snapshot.info()),
            _ => None,
        };
        is_named.then_some(SocketEntry {
            transport,
            connection,
            info,
            buffers: [options.recv_buffer, options.send_buffer],
        })
    }

    /// Connections in TIME_WAIT, without the first `skipped` of them.
    pub fn time_waits_from(&self, skipped: usize) -> impl Iterator<Item = ConnectionEntry> + '_ {
        let waiting = self.net.time_wait.iter().skip(skipped);
        waiting.map(|tuple| ConnectionEntry {
            socket: None,
            state: State::TimeWait,
            local: tuple.local,
            remote: tuple.remote,
            unread: 0,
            unacked: 0,
        })
    }
}

impl crate::udp::UdpSocket {
    fn entry(&self) -> ConnectionEntry {
        ConnectionEntry {
            socket: Some(self.id),
            state: match self.peer {
                Some(_) => State::Established,
                None => State::Closed,
            },
            local: self.local,
            remote: self.peer.unwrap_or(Endpoint::any_of(self.local.addr)),
            unread: self.queued_bytes(),
            unacked: 0,
        }
    }
}
