//! `struct sietch_event`.

use libc::sockaddr_in;

use crate::data::Data;
use crate::failure::{Failure, Result};
use crate::names::{Connection, Listener, Socket};
use crate::pointers::{NO_SOCKADDR, sockaddr};
use crate::table::Table;

/// `enum sietch_kind`.
#[repr(u32)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)] // The header says it.
pub enum Kind {
    Datagram = 1,
    Undelivered = 2,
    Accepted = 3,
    Connected = 4,
    Received = 5,
    Sendable = 6,
    Ended = 7,
    Lost = 8,
}

/// As the header has it.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Event {
    /// What happened.
    pub kind: u32,
    /// A negative number of errno(3).
    pub error: i32,
    /// To whom.
    pub socket: Socket,
    /// To whom.
    pub listener: Listener,
    /// To whom, or by whom.
    pub connection: Connection,
    /// What came with it.
    pub data: Data,
    /// From whom.
    pub from: sockaddr_in,
    /// Zero.
    pub reserved: u64,
}

impl Event {
    #[inline]
    fn of(kind: Kind) -> Self {
        Self {
            kind: kind as u32,
            error: 0,
            socket: Socket::NONE,
            listener: Listener::NONE,
            connection: Connection::NONE,
            data: Data::NONE,
            from: NO_SOCKADDR,
            reserved: 0,
        }
    }

    #[inline]
    fn on(kind: Kind, connection: sietch_io::Connection) -> Self {
        Self {
            connection: connection.into(),
            ..Self::of(kind)
        }
    }

    /// For the program; data gets a name in the table.
    #[inline]
    pub(crate) fn new(event: sietch_io::Event, table: &mut Table) -> Result<Self> {
        use sietch_io::Event as Happened;
        Ok(match event {
            Happened::Datagram { socket, from, data } => Self {
                socket: socket.into(),
                from: sockaddr(from),
                data: Data::add(table, data)?,
                ..Self::of(Kind::Datagram)
            },
            Happened::Received { connection, data } => Self {
                data: Data::add(table, data)?,
                ..Self::on(Kind::Received, connection)
            },
            Happened::Undelivered { socket, error } => Self {
                socket: socket.into(),
                error: Failure::from(error).number(),
                ..Self::of(Kind::Undelivered)
            },
            Happened::Accepted {
                listener,
                connection,
            } => Self {
                listener: listener.into(),
                ..Self::on(Kind::Accepted, connection)
            },
            Happened::Connected { connection } => Self::on(Kind::Connected, connection),
            Happened::Sendable { connection } => Self::on(Kind::Sendable, connection),
            Happened::Ended { connection } => Self::on(Kind::Ended, connection),
            Happened::Lost { connection, error } => Self {
                error: Failure::from(error).number(),
                ..Self::on(Kind::Lost, connection)
            },
        })
    }
}
