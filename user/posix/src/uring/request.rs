//! Requests, by their places in a table.

use ::uring::{Facts, Link, Operation, Sqe, SqeFlags, decode};
use base::Instant;

use super::world::Target;

/// A request's place in the table.
pub type Slot = u32;

/// Why a request is to end, chosen once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// Somebody cancelled it, or what it is linked to failed.
    Cancelled,
    /// Its time is over.
    Expired,
    /// It has seen as many completions as it waited for.
    Counted,
    /// Its entry asks for nothing that there is.
    Invalid,
}

/// What the kernel has of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Forwarded {
    /// Nothing.
    No,
    /// All of it.
    Whole,
    /// The wait for its file's readiness.
    Poll,
}

/// A request.
#[derive(Debug)]
pub struct Request {
    pub sqe: Sqe,
    /// What is to be done; a no-op if the entry is invalid.
    pub operation: Operation,
    /// What the program calls it now.
    pub user_data: u64,
    /// A poll's events now.
    pub events: u32,
    /// Where its descriptor leads, found once: when its turn comes.
    pub target: Option<Target>,
    /// It ends a chain (or is alone).
    pub is_last: bool,
    pub is_queued: bool,
    /// Its turn has come: nothing that it is linked to, and no drain, is before it.
    pub is_started: bool,
    pub is_begun: bool,
    pub is_tried: bool,
    /// Its completion is posted; it is here until the kernel has told its own.
    pub is_finished: bool,
    pub ending: Option<Ending>,
    /// Bytes moved by earlier tries.
    pub done: usize,
    /// What comes after it.
    pub next: Option<Slot>,
    /// What limits its time, and what it limits.
    pub limit: Option<Slot>,
    pub limited: Option<Slot>,
    /// When its time is over.
    pub deadline: Option<Instant>,
    /// The number that it waits for, and who waits for it, too.
    pub waits_for: Option<i32>,
    pub next_waiting: Option<Slot>,
    pub previous_waiting: Option<Slot>,
    pub forwarded: Forwarded,
}

impl Request {
    /// A request that was just taken from the ring.
    pub fn new(sqe: Sqe) -> Self {
        let decoded = decode(&sqe);
        let operation = decoded.unwrap_or(Operation::Nop);
        let events = match operation {
            Operation::Poll { events, .. } => events,
            _ => 0,
        };
        Self {
            sqe,
            operation,
            user_data: sqe.user_data,
            events,
            target: None,
            is_last: false,
            is_queued: false,
            is_started: false,
            is_begun: false,
            is_tried: false,
            is_finished: false,
            ending: decoded.is_err().then_some(Ending::Invalid),
            done: 0,
            next: None,
            limit: None,
            limited: None,
            deadline: None,
            waits_for: None,
            next_waiting: None,
            previous_waiting: None,
            forwarded: Forwarded::No,
        }
    }

    /// How it ties the next one to itself.
    pub fn link(&self) -> Link {
        self.sqe.link()
    }

    /// Whether its entry says so.
    pub fn has(&self, flag: SqeFlags) -> bool {
        SqeFlags::from_bits_truncate(self.sqe.flags).contains(flag)
    }

    /// What a cancellation looks at.
    pub fn facts(&self) -> Facts {
        Facts {
            user_data: self.user_data,
            file: self.target.map(identity),
            opcode: self.sqe.opcode,
        }
    }
}

/// What stands for a file.
pub fn identity(target: Target) -> usize {
    match target {
        Target::Own(number) | Target::Kernel(number) => number.cast_unsigned() as usize,
        Target::KernelFixed(index) => usize::MAX - index.cast_unsigned() as usize,
    }
}

/// The table.
#[derive(Default, Debug)]
pub struct Requests {
    slots: Vec<Option<Request>>,
    free: Vec<Slot>,
}

impl Requests {
    /// Takes one in.
    pub fn insert(&mut self, request: Request) -> Slot {
        match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = Some(request);
                slot
            }
            None => {
                self.slots.push(Some(request));
                self.slots.len() as Slot - 1
            }
        }
    }

    /// Takes one out.
    pub fn remove(&mut self, slot: Slot) {
        if let Some(place) = self.slots.get_mut(slot as usize)
            && place.take().is_some()
        {
            self.free.push(slot);
        }
    }

    /// One of them.
    pub fn get_mut(&mut self, slot: Slot) -> Option<&mut Request> {
        self.slots.get_mut(slot as usize)?.as_mut()
    }

    /// The same, to look at.
    pub fn get(&self, slot: Slot) -> Option<&Request> {
        self.slots.get(slot as usize)?.as_ref()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (Slot, &Request)> {
        let slots = (0..).zip(&self.slots);
        slots.filter_map(|(slot, place)| Some((slot, place.as_ref()?)))
    }
}
