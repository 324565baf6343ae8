//! What a program asks a station for: sockets, and that it sends.

use std::net::Ipv4Addr;

use inet::{Endpoint, Error, SocketId, Transport};
use mbuf::Chain;
use rt::FrameIo;

use super::Station;
use crate::readiness::Kind;
use crate::socket::{Connection, Listener, UdpSocket};

impl<P: FrameIo> Station<P> {
    fn open(&mut self, transport: Transport, port: u16, kind: Kind) -> Result<SocketId, Error> {
        let id = self.stack.open(transport)?;
        let local = Endpoint::v4(Ipv4Addr::UNSPECIFIED, port);
        if let Err(error) = self.stack.bind(id, local) {
            self.stack.close(&mut self.world, id)?;
            return Err(error);
        }
        self.world.readiness.add(id, kind);
        Ok(id)
    }

    /// A socket for datagrams to a port; zero picks one.
    pub fn bind(&mut self, port: u16) -> Result<UdpSocket, Error> {
        self.open(Transport::Udp, port, Kind::Udp).map(UdpSocket)
    }

    /// Lets peers connect to a port; `backlog` of them wait until they are received.
    pub fn listen(&mut self, port: u16, backlog: usize) -> Result<Listener, Error> {
        let id = self.open(Transport::Tcp, port, Kind::Listener)?;
        self.stack.listen(id, backlog)?;
        Ok(Listener(id))
    }

    /// Asks a peer; [`Event::Connected`] or [`Event::Lost`] follows.
    pub fn connect(&mut self, to: Endpoint) -> Result<Connection, Error> {
        let id = self.open(Transport::Tcp, 0, Kind::Stream)?;
        if let Some(stream) = self.world.readiness.stream(id) {
            stream.is_connecting = true;
        }
        self.stack.connect(&mut self.world, id, to)?;
        Ok(Connection(id))
    }

    /// Sends a datagram, which is given away.
    #[inline]
    pub fn send_to(&mut self, socket: UdpSocket, to: Endpoint, data: Chain) -> Result<(), Error> {
        self.stack
            .send_chain_to(&mut self.world, socket.0, Some(to), data)
    }

    /// Sends a datagram of bytes that are copied.
    pub fn send_bytes_to(
        &mut self,
        socket: UdpSocket,
        to: Endpoint,
        bytes: &[u8],
    ) -> Result<(), Error> {
        let (id, len) = (socket.0, bytes.len());
        let mut left = bytes;
        let mut fill = |space: &mut [u8]| copy(&mut left, space);
        let sent = self
            .stack
            .send_to(&mut self.world, id, Some(to), len, &mut fill);
        sent.map(drop)
    }

    /// Sends what there is room for of `data`, and leaves the rest in it; [`Event::Sendable`] follows
    /// then.
    ///
    /// Errors: `WouldBlock` if there is none.
    pub fn send(&mut self, connection: Connection, data: &mut Chain) -> Result<usize, Error> {
        let sent = self.stack.send_chain(&mut self.world, connection.0, data);
        self.note_sent(connection, !data.is_empty());
        sent
    }

    /// Sends what there is room for of bytes that are copied.
    ///
    /// Errors: `WouldBlock` if there is none.
    pub fn send_bytes(&mut self, connection: Connection, bytes: &[u8]) -> Result<usize, Error> {
        let mut left = bytes;
        let mut fill = |space: &mut [u8]| copy(&mut left, space);
        let sent = self
            .stack
            .send_with(&mut self.world, connection.0, bytes.len(), &mut fill);
        let is_all = sent.is_ok_and(|sent| sent == bytes.len());
        self.note_sent(connection, !is_all);
        sent
    }

    fn note_sent(&mut self, connection: Connection, is_starved: bool) {
        if is_starved && let Some(stream) = self.world.readiness.stream(connection.0) {
            stream.is_starved = true;
        }
    }

    /// Lets a connection go: what was sent still reaches the peer. Its name is dead.
    pub fn close(&mut self, connection: Connection) -> Result<(), Error> {
        self.forget(connection.0)
    }

    /// Lets a datagram socket go.
    pub fn unbind(&mut self, socket: UdpSocket) -> Result<(), Error> {
        self.forget(socket.0)
    }

    /// Lets no more peers connect.
    pub fn stop_listening(&mut self, listener: Listener) -> Result<(), Error> {
        self.forget(listener.0)
    }

    pub(super) fn forget(&mut self, id: SocketId) -> Result<(), Error> {
        self.world.readiness.remove(id);
        self.world.datagrams.retain(|(of, ..)| *of != id);
        self.stack.close(&mut self.world, id)
    }
}

/// Copies as much as fits, and moves on.
fn copy(left: &mut &[u8], space: &mut [u8]) -> usize {
    let count = left.len().min(space.len());
    let (now, rest) = left.split_at(count);
    space[..count].copy_from_slice(now);
    *left = rest;
    count
}
