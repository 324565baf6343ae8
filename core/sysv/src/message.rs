//! Messages with types.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// One message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Message {
    /// Its type, above 0.
    pub kind: i64,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// Which message a receiver wants.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pick {
    /// The first.
    First,
    /// The first of this type.
    OfKind(i64),
    /// The first of another type (MSG_EXCEPT).
    NotOfKind(i64),
    /// The first of the lowest type that is at most this.
    LowestUpTo(i64),
    /// The one at this place, which stays (MSG_COPY).
    CopyOf(usize),
}

/// Why a message was not put in or taken out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QueueError {
    /// There is no room, or no such message, now.
    WouldBlock,
    /// The message has more bytes than the receiver wants.
    TooLarge,
}

/// The messages of one queue, first come first served.
#[derive(Debug)]
pub struct Queue {
    messages: VecDeque<Message>,
    bytes: usize,
    /// Bytes that may wait, and messages: as many as there may be bytes.
    pub bytes_max: usize,
}

impl Queue {
    /// An empty queue.
    pub const fn new(bytes_max: usize) -> Self {
        Self {
            messages: VecDeque::new(),
            bytes: 0,
            bytes_max,
        }
    }

    /// Messages that wait.
    pub fn len(&self) -> usize {
        self.messages.len()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Their bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Puts a message in, or gives it back if there is no room.
    pub fn put(&mut self, message: Message) -> Result<(), Message> {
        let fits = self.bytes + message.bytes.len() <= self.bytes_max
            && self.messages.len() < self.bytes_max;
        if !fits || self.messages.try_reserve(1).is_err() {
            return Err(message);
        }
        self.bytes += message.bytes.len();
        self.messages.push_back(message);
        Ok(())
    }

    /// Takes a message out. One of more than `limit` bytes stays, unless it may be cut.
    pub fn take(&mut self, pick: Pick, limit: usize, may_cut: bool) -> Result<Message, QueueError> {
        let index = self.find(pick).ok_or(QueueError::WouldBlock)?;
        if self.messages[index].bytes.len() > limit && !may_cut {
            return Err(QueueError::TooLarge);
        }
        let mut message = match pick {
            Pick::CopyOf(_) => self.messages[index].clone(),
            _ => self.remove(index).ok_or(QueueError::WouldBlock)?,
        };
        message.bytes.truncate(limit);
        Ok(message)
    }

    fn remove(&mut self, index: usize) -> Option<Message> {
        let message = self.messages.remove(index)?;
        self.bytes -= message.bytes.len();
        Some(message)
    }

    fn find(&self, pick: Pick) -> Option<usize> {
        let mut kinds = self.messages.iter().map(|message| message.kind);
        match pick {
            Pick::First => (!self.messages.is_empty()).then_some(0),
            Pick::OfKind(wanted) => kinds.position(|kind| kind == wanted),
            Pick::NotOfKind(unwanted) => kinds.position(|kind| kind != unwanted),
            Pick::LowestUpTo(limit) => {
                let low = kinds.enumerate().filter(|(_, kind)| *kind <= limit);
                low.min_by_key(|(_, kind)| *kind).map(|(index, _)| index)
            }
            Pick::CopyOf(index) => (index < self.messages.len()).then_some(index),
        }
    }
}
