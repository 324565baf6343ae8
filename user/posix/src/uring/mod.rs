//! io_uring over sockets of ours: requests that are tried, wait and are tried again.
//!
//! # Problem
//! A program that hands over its sends and receives by a ring asks the kernel, which has its sockets' numbers and
//! nothing behind them. Its files are the kernel's, in the same ring and in the same chains.
//!
//! # Idea
//! The rules are the kernel's (`core/uring`, and `kernel/uring`, which this follows module by module): rings, chains,
//! drains, counted timeouts, lent buffers. Who calls does the work: what would wait is *watched* and tried again when
//! the socket says that something has changed. What is none of ours is *forwarded* to a ring of the kernel's, with its place in
//! our table for a name, and its completion is carried over. So an order that a chain or a drain asks for
//! holds whoever does its members.
//!
//! A [`Ring`] makes no system call and has no lock; a [`World`] does what it decides.
//!
//! # Invariants
//! - A request is in the table until its completion is posted, and, if it was forwarded, until the kernel has told its own.
//! - A completion's place is reserved before its request begins, so none is lost.
//! - The table, the queue of what can go on and the completions that wait for room are each bounded by [`REQUESTS_MAX`].
//!
//! # Not here
//! SQPOLL and IOPOLL; what an entry that is the kernel's means.

mod advance;
mod attempt;
mod cancel;
mod finish;
mod forward;
mod registered;
mod request;
mod submit;
mod timeout;
mod watched;
mod world;

use std::collections::{BTreeSet, VecDeque};

use ::uring::{CompletionQueue, Counted, Drain, Geometry, SubmissionQueue, offset};
use base::{Instant, SharedMemory};

pub use forward::MARK;
pub use registered::{Place, Registered};
pub use request::Slot;
pub use submit::REQUESTS_MAX;
pub use world::{Memory, Target, Task, World};

use request::Requests;
use watched::Watched;

/// See the module.
pub struct Ring<M> {
    rings: M,
    entries: M,
    geometry: Geometry,
    submits_all: bool,
    submissions: SubmissionQueue,
    completions: CompletionQueue,
    drain: Drain<Slot>,
    counted: Counted<Slot>,
    requests: Requests,
    /// What can go on.
    queue: VecDeque<Slot>,
    watched: Watched,
    timers: BTreeSet<(Instant, Slot)>,
    forwarded: usize,
    /// What its program has registered.
    pub registered: Registered,
}

impl<M: SharedMemory> Ring<M> {
    /// Goes on with rings as they are.
    pub fn new(geometry: Geometry, submits_all: bool, rings: M, entries: M) -> Self {
        let head = rings.load(offset::SQ_HEAD);
        let tail = rings.load(offset::CQ_TAIL);
        Self {
            submissions: SubmissionQueue::at(geometry, head),
            completions: CompletionQueue::at(geometry, tail),
            rings,
            entries,
            geometry,
            submits_all,
            drain: Drain::default(),
            counted: Counted::default(),
            requests: Requests::default(),
            queue: VecDeque::new(),
            watched: Watched::default(),
            timers: BTreeSet::new(),
            forwarded: 0,
            registered: Registered::default(),
        }
    }

    /// The rings' sizes.
    pub fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// Completions that its program has not taken, after those that waited for room were moved in as far as there is
    /// some.
    pub fn ready(&mut self) -> u32 {
        self.completions.flush(&self.rings);
        self.completions.ready(&self.rings)
    }

    /// Whether completions wait for room.
    pub fn has_overflow(&self) -> bool {
        self.completions.has_overflow()
    }

    /// Completions so far; the number wraps around.
    pub fn posted(&self) -> u32 {
        self.completions.posted()
    }

    /// Whether any request is under way.
    pub fn is_busy(&self) -> bool {
        !self.requests.is_empty()
    }

    /// Requests that the kernel has.
    pub fn forwarded(&self) -> usize {
        self.forwarded
    }

    /// Whether some request can go on now.
    pub fn has_work(&self) -> bool {
        !self.queue.is_empty()
    }

    /// When the next timeout ends.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.timers.first().map(|(at, _)| *at)
    }

    /// Does what can be done now.
    pub fn work(&mut self, world: &mut impl World, now: Instant) {
        self.expire(now);
        while let Some(slot) = self.queue.pop_front() {
            self.advance(world, slot);
        }
    }

    /// Something has happened to a socket: who waits for it is tried again.
    pub fn note_ready(&mut self, number: i32) {
        while let Some(slot) = self.watched.pop(number, &mut self.requests) {
            self.wake(slot);
        }
    }

    /// The slot's request can go on.
    fn wake(&mut self, slot: Slot) {
        if let Some(request) = self.requests.get_mut(slot)
            && !request.is_queued
        {
            request.is_queued = true;
            self.queue.push_back(slot);
        }
    }
}
