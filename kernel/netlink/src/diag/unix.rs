//! Unix sockets, as `ss -x` asks for them.

use alloc::vec::Vec;
use core::cell::Cell;

use netlink::{Body, Dump, Emit, Progress, UnixRequest, UnixSocket, Writer};
use sync::Error;

use crate::answer::Refusal;
use crate::requester::Requester;
use sockets::{UnixFacts, next_unix_socket};
use vfs::socket::{SocketType, UnixAddress};

/// Which sockets a dump shows, and what of them.
pub(crate) struct DumpFilter {
    request: UnixRequest,
    /// The last socket that the program has.
    last: u64,
}

impl DumpFilter {
    pub fn of(asked: &UnixRequest) -> Self {
        Self {
            request: *asked,
            last: 0,
        }
    }

    /// Adds what fits behind the last one.
    pub fn fill(&mut self, dump: &Dump, to: &mut Writer<'_>) -> Progress {
        // The socket before the one that was offered last.
        let (before, current) = (Cell::new(self.last), Cell::new(self.last));
        let all = core::iter::from_fn(|| {
            before.set(current.get());
            let facts = next_unix_socket(current.get())?;
            current.set(facts.number);
            Some(facts)
        });
        let states = self.request.states;
        let selected = all.filter(|facts| states & 1 << facts.state as u32 != 0);
        let progress = dump.fill(to, selected.map(|facts| Answer::new(facts, self.request)));
        self.last = before.get();
        progress
    }
}

/// A socket as an answer.
struct Answer {
    facts: UnixFacts,
    name: Vec<u8>,
    request: UnixRequest,
}

impl Answer {
    fn new(facts: UnixFacts, request: UnixRequest) -> Self {
        let name = match &facts.name {
            UnixAddress::Unnamed => Vec::new(),
            UnixAddress::Path(path) => path.to_vec(),
            UnixAddress::Abstract(name) => [&[0], &name[..]].concat(),
        };
        Self {
            facts,
            name,
            request,
        }
    }
}

/// Linux's number of a type.
fn type_number(kind: SocketType) -> u8 {
    match kind {
        SocketType::Stream => 1,
        SocketType::Datagram => 2,
        SocketType::Raw => 3,
        SocketType::SeqPacket => 5,
    }
}

impl Emit for Answer {
    fn kind(&self) -> u16 {
        UnixSocket::default().kind()
    }

    fn emit(&self, to: &mut Body<'_>) {
        let short = |bytes: usize| u32::try_from(bytes).unwrap_or(u32::MAX);
        let facts = &self.facts;
        let socket = UnixSocket {
            socket_type: type_number(facts.kind),
            state: facts.state as u8,
            inode: facts.number as u32,
            cookie: facts.number,
            name: (!self.name.is_empty()).then_some(&self.name),
            peer: facts.peer.map(|peer| peer as u32),
            queues: Some([short(facts.waiting), short(facts.sent)]),
            shutdown: Some(0),
            user: Some(0),
            ..UnixSocket::default()
        };
        self.request.pick(&socket).emit(to);
    }
}

/// Shows the one socket that the request names by its number.
pub(crate) fn get(requester: &Requester<'_>, request: &UnixRequest) -> Result<(), Refusal> {
    let before = u64::from(request.inode).saturating_sub(1);
    let found = next_unix_socket(before).filter(|facts| facts.number == u64::from(request.inode));
    let answer = Answer::new(found.ok_or(Error::NotFound)?, *request);
    Ok(requester.answer(&answer)?)
}
