//! The search: first every socket's standing, then whatever can be reached from roots.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::ops::Bound;

use super::{Graph, SocketId};

/// What the graph's user knows of a socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standing {
    /// This many references to it exist, those of messages included; 0 if it is gone.
    Referred(usize),
    /// It waits to be accepted from this one.
    Waiting(SocketId),
}

/// How far a search is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Progress {
    /// There is more to look at.
    More,
    /// The graph has changed: whoever still wants to know begins anew.
    Void,
    /// These are garbage, in ascending order.
    Done(Vec<SocketId>),
}

/// A search for garbage under way.
#[derive(Debug)]
pub struct Search {
    changes: u64,
    /// The last socket whose standing is known.
    last: Option<SocketId>,
    is_sorted: bool,
    /// Sockets that wait to be accepted, behind who listens.
    waiting: BTreeMap<SocketId, Vec<SocketId>>,
    reached: BTreeSet<SocketId>,
    to_visit: Vec<SocketId>,
    /// Garbage up to `last`, once all that can be reached is.
    garbage: Option<Vec<SocketId>>,
}

impl Search {
    /// A search in the graph as it is now.
    pub fn new(graph: &Graph) -> Self {
        Self {
            changes: graph.changes,
            last: None,
            is_sorted: false,
            waiting: BTreeMap::new(),
            reached: BTreeSet::new(),
            to_visit: Vec::new(),
            garbage: None,
        }
    }

    /// Looks at some sockets more; the cost follows `budget`, counted in sockets and edges.
    pub fn step(
        &mut self,
        graph: &Graph,
        budget: usize,
        standing: impl Fn(SocketId) -> Standing,
    ) -> Progress {
        if graph.changes != self.changes {
            return Progress::Void;
        }
        if !self.is_sorted {
            self.sort(graph, budget, standing);
            return Progress::More;
        }
        if let Some(garbage) = self.garbage.take() {
            return self.list(graph, budget, garbage);
        }
        let mut left = budget;
        while left != 0 {
            let Some(socket) = self.to_visit.pop() else {
                self.last = None;
                self.garbage = Some(Vec::new());
                break;
            };
            left = left.saturating_sub(1 + self.visit(graph, socket));
        }
        Progress::More
    }

    /// Goes through all sockets again, for those that were not reached.
    fn list(&mut self, graph: &Graph, budget: usize, mut garbage: Vec<SocketId>) -> Progress {
        let from = self.last.map_or(Bound::Unbounded, Bound::Excluded);
        let mut batch = graph.vertices.range((from, Bound::Unbounded));
        for _ in 0..budget {
            let Some((&socket, _)) = batch.next() else {
                return Progress::Done(garbage);
            };
            self.last = Some(socket);
            if !self.reached.contains(&socket) {
                garbage.push(socket);
            }
        }
        self.garbage = Some(garbage);
        Progress::More
    }

    /// Finds out about sockets in ascending order: roots are reached.
    fn sort(&mut self, graph: &Graph, budget: usize, standing: impl Fn(SocketId) -> Standing) {
        let from = self.last.map_or(Bound::Unbounded, Bound::Excluded);
        let mut batch = graph.vertices.range((from, Bound::Unbounded));
        for _ in 0..budget {
            let Some((&socket, vertex)) = batch.next() else {
                self.is_sorted = true;
                return;
            };
            self.last = Some(socket);
            match standing(socket) {
                Standing::Referred(references) if references > vertex.carried => {
                    self.reach(socket);
                }
                Standing::Referred(_) => {}
                Standing::Waiting(listener) => {
                    self.waiting.entry(listener).or_default().push(socket);
                    if !graph.vertices.contains_key(&listener) {
                        // No message carries the listener, so a program has it.
                        self.reach(socket);
                    }
                }
            }
        }
    }

    fn reach(&mut self, socket: SocketId) {
        if self.reached.insert(socket) {
            self.to_visit.push(socket);
        }
    }

    /// Reaches what can be received with `socket`; returns how much was looked at.
    fn visit(&mut self, graph: &Graph, socket: SocketId) -> usize {
        let mut count = 0;
        for accepted in self.waiting.remove(&socket).unwrap_or_default() {
            self.reach(accepted);
            count += 1;
        }
        if let Some(vertex) = graph.vertices.get(&socket) {
            for &carried in vertex.queued.keys() {
                self.reach(carried);
                count += 1;
            }
        }
        count
    }
}
