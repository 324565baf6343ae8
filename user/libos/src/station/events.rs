//! What happened to a program's sockets, one thing after the other.

use inet::{Error, Events};
use rt::FrameIo;

use super::Station;
use crate::event::Event;
use crate::readiness::{Kind, Stream};
use crate::socket::{Connection, Listener, UdpSocket};

/// Bytes of a stream that come with one event.
const STREAM_BYTES: usize = 64 * 1024;

impl<P: FrameIo> Station<P> {
    /// The next thing that happened to a socket.
    pub fn receive(&mut self) -> Option<Event> {
        if let Some((id, from, data)) = self.world.datagrams.pop_front() {
            return Some(Event::Datagram {
                socket: UdpSocket(id),
                from,
                data,
            });
        }
        while let Some((id, kind)) = self.world.readiness.first() {
            let event = match kind {
                Kind::Udp => self.datagram(UdpSocket(id)),
                Kind::Listener => self.accept(Listener(id)),
                Kind::Stream => self.stream_event(Connection(id)),
                // These have a list of their own.
                Kind::Plain => None,
            };
            if event.is_some() {
                return event;
            }
            self.world.readiness.pop();
        }
        None
    }

    #[inline]
    fn datagram(&mut self, socket: UdpSocket) -> Option<Event> {
        match self.stack.recv_from(socket.0) {
            Ok(datagram) => Some(Event::Datagram {
                socket,
                from: datagram.from,
                data: datagram.payload,
            }),
            Err(Error::WouldBlock | Error::BadSocket) => None,
            Err(error) => Some(Event::Undelivered { socket, error }),
        }
    }

    fn accept(&mut self, listener: Listener) -> Option<Event> {
        let id = self.stack.accept(&mut self.world, listener.0).ok()?;
        self.world.readiness.add(id, Kind::Stream);
        // Bytes may have come before it was known.
        self.world.readiness.note(id);
        Some(Event::Accepted {
            listener,
            connection: Connection(id),
        })
    }

    fn stream_event(&mut self, connection: Connection) -> Option<Event> {
        let stream = *self.world.readiness.stream(connection.0)?;
        match stream.is_connecting {
            true => self.connected(connection),
            false => self
                .received(connection, stream)
                .or_else(|| self.sendable(connection, stream)),
        }
    }

    fn connected(&mut self, connection: Connection) -> Option<Event> {
        if let Some(error) = self.stack.take_error(connection.0) {
            return Some(self.lose(connection, error));
        }
        let events = self.stack.poll(connection.0);
        if !events.contains(Events::WRITABLE) {
            return None;
        }
        self.world.readiness.stream(connection.0)?.is_connecting = false;
        Some(Event::Connected { connection })
    }

    fn received(&mut self, connection: Connection, stream: Stream) -> Option<Event> {
        if stream.is_ended {
            let error = self.stack.take_error(connection.0)?;
            return Some(self.lose(connection, error));
        }
        let id = connection.0;
        match self.stack.recv_chain(&mut self.world, id, STREAM_BYTES) {
            Ok(data) if data.is_empty() => {
                self.world.readiness.stream(id)?.is_ended = true;
                Some(Event::Ended { connection })
            }
            Ok(data) => Some(Event::Received { connection, data }),
            Err(Error::WouldBlock) => None,
            Err(error) => Some(self.lose(connection, error)),
        }
    }

    fn sendable(&mut self, connection: Connection, stream: Stream) -> Option<Event> {
        let has_room =
            stream.is_starved && self.stack.poll(connection.0).contains(Events::WRITABLE);
        if !has_room {
            return None;
        }
        self.world.readiness.stream(connection.0)?.is_starved = false;
        Some(Event::Sendable { connection })
    }

    fn lose(&mut self, connection: Connection, error: Error) -> Event {
        // It is closed already; only the name is given back.
        self.forget(connection.0).ok();
        Event::Lost { connection, error }
    }
}
