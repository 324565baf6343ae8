//! Which sockets may have something for the program, in the order in which it came.
//!
//! A socket stands in the list once, until it has nothing more; one that was closed meanwhile has
//! nothing. So the list is no longer than the sockets that there are, and those closed in one
//! batch. Connections that no listener has handed out yet are not known here: what happens to them is
//! asked for when they are.
//!
//! Plain sockets have a list of their own: their owner is told their names and nothing else.

use std::collections::VecDeque;

use inet::SocketId;

/// What a socket is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Datagrams.
    Udp,
    /// Peers connect to it.
    Listener,
    /// A stream.
    Stream,
    /// One whose owner asks the stack itself.
    Plain,
}

/// What a program was told, and waits for, of a stream.
#[derive(Clone, Copy, Default, Debug)]
pub struct Stream {
    /// We have asked a peer that has not answered.
    pub is_connecting: bool,
    /// The program knows that the peer has sent all.
    pub is_ended: bool,
    /// A send did not take all.
    pub is_starved: bool,
}

struct Known {
    id: SocketId,
    kind: Kind,
    /// Of a stream.
    stream: Stream,
    is_listed: bool,
}

/// See the module.
#[derive(Default)]
pub struct Readiness {
    /// By their slots in the stack, which are few and dense.
    sockets: Vec<Option<Known>>,
    list: VecDeque<(SocketId, Kind)>,
    /// The plain ones.
    changed: VecDeque<SocketId>,
}

impl Readiness {
    /// The program has a socket from now on.
    pub fn add(&mut self, id: SocketId, kind: Kind) {
        if self.sockets.len() <= id.index() {
            self.sockets.resize_with(id.index() + 1, || None);
        }
        self.sockets[id.index()] = Some(Known {
            id,
            kind,
            stream: Stream::default(),
            is_listed: false,
        });
    }

    /// And no longer.
    pub fn remove(&mut self, id: SocketId) {
        if self.known(id).is_some() {
            self.sockets[id.index()] = None;
        }
    }

    #[inline]
    fn known(&mut self, id: SocketId) -> Option<&mut Known> {
        let known = self.sockets.get_mut(id.index())?.as_mut();
        known.filter(|known| known.id == id)
    }

    /// The socket may have something.
    #[inline]
    pub fn note(&mut self, id: SocketId) {
        if let Some(known) = self.known(id)
            && !known.is_listed
        {
            known.is_listed = true;
            match known.kind {
                Kind::Plain => self.changed.push_back(id),
                kind => self.list.push_back((id, kind)),
            }
        }
    }

    /// Whether it is a socket whose datagrams come with events.
    #[inline]
    pub fn is_udp(&mut self, id: SocketId) -> bool {
        self.known(id).is_some_and(|known| known.kind == Kind::Udp)
    }

    /// Whether anything may have happened to a plain socket.
    #[inline]
    pub fn has_changed(&self) -> bool {
        !self.changed.is_empty()
    }

    /// The next plain socket that something may have happened to.
    #[inline]
    pub fn next_changed(&mut self) -> Option<SocketId> {
        loop {
            let id = self.changed.pop_front()?;
            if let Some(known) = self.known(id) {
                known.is_listed = false;
                return Some(id);
            }
        }
    }

    /// Whether any has.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The first one that may have something, and what it is. It stays the first. It may be closed: the stack
    /// says so.
    #[inline]
    pub fn first(&self) -> Option<(SocketId, Kind)> {
        self.list.front().copied()
    }

    /// The first one has nothing more.
    pub fn pop(&mut self) {
        let first = self.list.pop_front();
        if let Some(known) = first.and_then(|(id, _)| self.known(id)) {
            known.is_listed = false;
        }
    }

    /// What is known of a stream that is not closed.
    pub fn stream(&mut self, id: SocketId) -> Option<&mut Stream> {
        let known = self.known(id)?;
        (known.kind == Kind::Stream).then_some(&mut known.stream)
    }
}
