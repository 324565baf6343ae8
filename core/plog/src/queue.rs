//! A queue on a log: pushed at its end, popped at its head, both durably.
//!
//! A push is an append. A pop moves the head, and needs no room in the ring, so that a full queue can be emptied: pops are
//! durable with the anchor, and all that come while one anchor is under way share the next. Until then a loss of
//! power brings an item back ([`Queue::popped`] says which are gone for good); no item is lost or changes its
//! place.

use alloc::vec::Vec;

use crate::area::Area;
use crate::cursor::{Item, ReadError};
use crate::entry::HEADER_BYTES;
use crate::log::{AppendError, Log, Promise, Ticket};
use crate::shape::Place;

/// The queue. Commands and their ends go through its [`log`](Self::log).
#[derive(Debug)]
pub struct Queue {
    log: Log,
}

impl Queue {
    /// The log is the queue's from now on.
    pub fn new(log: Log) -> Self {
        Self { log }
    }

    /// For commands, their ends, and what is durable.
    pub fn log(&mut self) -> &mut Log {
        &mut self.log
    }

    /// Puts an item at the end; it is seen once it is durable.
    pub fn push(
        &mut self,
        header: &mut [u8; HEADER_BYTES],
        parts: &[&[u8]],
    ) -> Result<Ticket, AppendError> {
        self.log.append(0, header, parts, Promise::Durable)
    }

    /// Reads the item at the front into `into`, which stays there.
    pub fn front(
        &self,
        area: &mut dyn Area,
        into: &mut Vec<u8>,
    ) -> Result<Option<Item>, ReadError> {
        self.log.cursor().next(area, into)
    }

    /// Takes the item away that [`front`](Self::front) has read; false if it is not at the front.
    pub fn pop(&mut self, item: &Item) -> bool {
        let is_front = item.place.sequence() == self.log.head().sequence();
        let is_popped = is_front && self.log.trim(item.end).is_ok();
        if is_popped {
            self.log.anchor_soon();
        }
        is_popped
    }

    /// Items before are gone for good.
    pub fn popped(&self) -> Place {
        self.log.trimmed()
    }

    /// Durable items that were not popped.
    pub fn len(&self) -> u64 {
        self.log.durable().sequence() - self.log.head().sequence()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
