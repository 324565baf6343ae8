//! Sockets of IP, as `ss` asks for them: by family, protocol, states and its own filter.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cell::Cell;
use core::net::SocketAddr;

use inet::Transport;
use netlink::{
    Body, Candidate, DiagFilter, DiagRequest, DiagSocket, Dump, Emit, Progress, SocketId, Writer,
};
use sync::Error;

use crate::answer::Refusal;
use crate::objects::address::is_family;
use crate::protocol::Abi;
use crate::requester::Requester;
use inet_sockets::{InetSocket, Position, Sockets};
use net::NetStack;

/// IANA's numbers.
const TCP: u32 = 6;
const UDP: u32 = 17;

/// Attributes by the bit of a request.
const MEMORY: u8 = 1;
const INFO: u8 = 2;
const CONGESTION: u8 = 4;
const SOCKET_MEMORY: u8 = 7;

/// Any cookie will do.
const ANY_COOKIE: u64 = u64::MAX;

/// Which sockets a dump shows, and what of them.
pub(crate) struct DumpFilter {
    family: u8,
    transport: Transport,
    /// Bit `n` for state `n`.
    states: u32,
    /// Ports of its own and of the other end; 0 for any.
    ports: [u16; 2],
    /// The program of `ss`; checked, none if empty.
    filter: Box<[u8]>,
    attributes: [bool; 4],
    place: Position,
}

impl DumpFilter {
    pub fn of(asked: &DiagRequest<'_>) -> Result<Self, Refusal> {
        let transport = match asked.protocol {
            TCP => Transport::Tcp,
            UDP => Transport::Udp,
            _ => return Err(Error::NotFound.into()),
        };
        let filter = asked.filter.map(|filter| filter.bytes());
        Ok(Self {
            family: asked.family,
            transport,
            states: asked.states,
            ports: [asked.id.local.port(), asked.id.remote.port()],
            filter: filter.unwrap_or_default().into(),
            attributes: [MEMORY, INFO, CONGESTION, SOCKET_MEMORY].map(|number| asked.wants(number)),
            place: Position::START,
        })
    }

    fn selects(&self, filter: Option<DiagFilter<'_>>, socket: &InetSocket) -> bool {
        let [own, other] = self.ports;
        let is_port = |wanted, end: SocketAddr| wanted == 0 || wanted == end.port();
        socket.transport == self.transport
            && is_family(self.family, socket.local.ip())
            && 1_u32.checked_shl(socket.state.into()).unwrap_or(0) & self.states != 0
            && is_port(own, socket.local)
            && is_port(other, socket.remote)
            && filter.is_none_or(|filter| filter.selects(&candidate(socket)))
    }

    fn answer(&self, socket: InetSocket, dialect: &Abi) -> Answer {
        let [memory, info, congestion, socket_memory] = self.attributes;
        let mut bytes = Vec::new();
        if let Some(told) = socket.info.as_ref().filter(|_| info) {
            (dialect.tcp_info)(told, &mut bytes);
        }
        Answer {
            socket,
            info: bytes,
            has_memory: memory,
            has_congestion: congestion,
            has_socket_memory: socket_memory,
        }
    }

    /// Adds what fits from where the last datagram ended.
    pub fn fill(
        &mut self,
        stack: &Arc<NetStack>,
        dump: &Dump,
        dialect: &Abi,
        to: &mut Writer<'_>,
    ) -> Progress {
        let filter = match self.filter.is_empty() {
            true => None,
            false => DiagFilter::check(&self.filter),
        };
        // Where the socket lies that was offered last: if it did not fit, the next
        // datagram starts with it.
        let place = Cell::new(self.place);
        let all = Sockets::from(stack.clone(), self.place);
        let all = all.map(Some).chain([None]);
        let wanted = all.map_while(|found| {
            place.set(found.map_or(Position::End, |(at, _)| at));
            found
        });
        let selected = wanted.filter(|(_, socket)| self.selects(filter, socket));
        let progress = dump.fill(to, selected.map(|(_, socket)| self.answer(socket, dialect)));
        self.place = place.get();
        progress
    }
}

fn candidate(socket: &InetSocket) -> Candidate {
    Candidate {
        id: id(socket),
        is_port_automatic: false,
        mark: 0,
    }
}

fn id(socket: &InetSocket) -> SocketId {
    SocketId {
        local: socket.local,
        remote: like(socket.local, socket.remote),
        link: 0,
        cookie: socket.number,
    }
}

/// The other end in the family of the own one, also where it is nowhere.
fn like(own: SocketAddr, other: SocketAddr) -> SocketAddr {
    match (own, other.port()) {
        (SocketAddr::V6(_), 0) => (core::net::Ipv6Addr::UNSPECIFIED, 0).into(),
        _ => other,
    }
}

/// A socket as an answer.
struct Answer {
    socket: InetSocket,
    /// What TCP_INFO tells; empty if it is not wanted.
    info: Vec<u8>,
    has_memory: bool,
    has_congestion: bool,
    has_socket_memory: bool,
}

impl Answer {
    fn message(&self) -> DiagSocket<'_> {
        let socket = &self.socket;
        let short = |bytes: usize| u32::try_from(bytes).unwrap_or(u32::MAX);
        let is_listener = socket.state == inet::State::Listen as u8;
        let [unread, unsent] = [socket.unread, socket.unacked].map(short);
        let [held_in, held_out] = match is_listener {
            true => [0, 0],
            false => [unread, unsent],
        };
        let [room_in, room_out] = socket.buffers;
        let name = socket.congestion.filter(|_| self.has_congestion);
        DiagSocket {
            state: socket.state,
            timer: 0,
            retransmits: socket.info.map_or(0, |info| info.retransmits),
            expires_ms: 0,
            id: id(socket),
            receive_queue: unread,
            send_queue: unsent,
            user: 0,
            inode: socket.number as u32,
            shutdown: Some(0),
            service: None,
            is_only_v6: None,
            congestion: name.map(str::as_bytes),
            info: (!self.info.is_empty()).then_some(&self.info),
            memory: self.has_memory.then_some([held_in, held_out, 0, held_out]),
            socket_memory: self
                .has_socket_memory
                .then_some([held_in, room_in, held_out, room_out, 0, held_out, 0, 0, 0]),
        }
    }
}

impl Emit for Answer {
    fn kind(&self) -> u16 {
        self.message().kind()
    }

    fn emit(&self, to: &mut Body<'_>) {
        self.message().emit(to);
    }
}

/// Shows the one socket that the request names by its ends.
pub(crate) fn get(
    requester: &Requester<'_>,
    request: &DiagRequest<'_>,
    wanted: &DumpFilter,
) -> Result<(), Refusal> {
    let is_meant = |socket: &InetSocket| {
        let found = id(socket);
        let is_cookie =
            matches!(request.id.cookie, ANY_COOKIE) || request.id.cookie == found.cookie;
        socket.transport == wanted.transport
            && (found.local, found.remote) == (request.id.local, request.id.remote)
            && is_cookie
    };
    let mut all =
        Sockets::from(requester.stack().clone(), Position::START).map(|(_, socket)| socket);
    let socket = all.find(is_meant).ok_or(Error::NotFound)?;
    let answer = wanted.answer(socket, requester.endpoint.dialect);
    Ok(requester.answer(&answer)?)
}
