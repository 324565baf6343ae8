//! Sockets under way in messages: which of them nobody can receive any more.
//!
//! A socket can be sent through a socket (SCM_RIGHTS of unix(7)). Two that lie in each other's
//! queue, and that no program has a descriptor of, are lost: only who holds one could
//! receive the other. Counting references does not find that, so this crate keeps a [`Graph`]:
//! its vertices are sockets, an edge goes from the socket in whose queue a message lies to each
//! socket that the message carries. Whatever cannot be reached from a socket that a program
//! holds is garbage, and a [`Search`] finds it.
//!
//! A search goes on in steps, between which the graph may change. Garbage stays garbage, but
//! what looks lost may have been moved by a program from a queue not yet looked at to one that was.
//! So each change is counted, and a search during which something changed is void ([`Progress`]).
//!
//! What the graph does not know, its user says for each socket ([`Standing`]): whether anybody
//! but messages refers to it; and of a connection that waits to be accepted, who listens, since
//! with the listener it can be received.
//!
//! Invariants: the messages that carry a socket are counted, those in somebody's hands
//! included; a vertex exists while a message carries it or lies in its queue.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod search;
#[cfg(test)]
mod tests;

use alloc::collections::BTreeMap;

pub use search::{Progress, Search, Standing};

/// What names a socket.
pub type SocketId = u64;

#[derive(Debug, Default)]
struct Vertex {
    /// How many messages carry it, wherever they are.
    carried: usize,
    /// What messages in its queue carry, and how often.
    queued: BTreeMap<SocketId, usize>,
}

/// All sockets that are under way, and those in whose queues they lie.
#[derive(Debug, Default)]
pub struct Graph {
    vertices: BTreeMap<SocketId, Vertex>,
    changes: u64,
}

impl Graph {
    /// Nothing is under way.
    pub const fn new() -> Self {
        Self {
            vertices: BTreeMap::new(),
            changes: 0,
        }
    }

    /// Sockets in it.
    pub fn len(&self) -> usize {
        self.vertices.len()
    }

    /// Whether nothing is under way.
    pub fn is_empty(&self) -> bool {
        self.vertices.is_empty()
    }

    /// A message is made that carries `socket`; it is in somebody's hands.
    pub fn take_up(&mut self, socket: SocketId) {
        self.changes += 1;
        self.vertices.entry(socket).or_default().carried += 1;
    }

    /// A message that carries `socket` comes to lie in the queue of `holder`.
    pub fn put(&mut self, holder: SocketId, socket: SocketId) {
        self.changes += 1;
        let queued = &mut self.vertices.entry(holder).or_default().queued;
        *queued.entry(socket).or_default() += 1;
    }

    /// A message that carries `socket` leaves the queue of `holder`, for somebody's hands.
    pub fn pull(&mut self, holder: SocketId, socket: SocketId) {
        self.changes += 1;
        let Some(vertex) = self.vertices.get_mut(&holder) else {
            return;
        };
        if let Some(times) = vertex.queued.get_mut(&socket) {
            *times -= 1;
            if *times == 0 {
                vertex.queued.remove(&socket);
            }
        }
        self.forget_if_unused(holder);
    }

    /// A message that carries `socket` is no more: it was received, or thrown away. Returns
    /// how many others carry it.
    pub fn lay_down(&mut self, socket: SocketId) -> usize {
        self.changes += 1;
        let Some(vertex) = self.vertices.get_mut(&socket) else {
            return 0;
        };
        vertex.carried = vertex.carried.saturating_sub(1);
        let left = vertex.carried;
        self.forget_if_unused(socket);
        left
    }

    /// Somebody has got hold of sockets without taking their message away (MSG_PEEK).
    pub fn note_peek(&mut self) {
        self.changes += 1;
    }

    fn forget_if_unused(&mut self, socket: SocketId) {
        let vertex = self.vertices.get(&socket);
        if vertex.is_some_and(|vertex| vertex.carried == 0 && vertex.queued.is_empty()) {
            self.vertices.remove(&socket);
        }
    }
}
