//! What the driver knows about its descriptors, out of the device's reach.

use alloc::boxed::Box;

/// Names a chain in flight; below the queue's size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Token(pub(crate) u16);

impl Token {
    /// The number as an array index.
    #[inline]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// Why a chain was not added.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AddError {
    /// Not enough free descriptors now.
    Full,
    /// The chain has no parts.
    Empty,
    /// The chain has more parts than the queue was made for.
    TooManyParts,
    /// The device broke the queue earlier.
    Broken,
}

/// How a device broke its queue. The queue stays broken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QueueError {
    /// The used index moved by more than there was in flight.
    UsedIndexJumped {
        /// Completions that the device claims.
        claimed: u16,
        /// Chains that were in flight.
        in_flight: u16,
    },
    /// A completion names a descriptor that does not exist.
    NoSuchChain(u32),
    /// A completion names a descriptor that heads no chain in flight.
    NotInFlight(u16),
    /// A completion claims more bytes than the chain has room for.
    WroteTooMuch {
        /// Bytes that the device claims.
        claimed: u32,
        /// Bytes that it may have written.
        room: u32,
    },
    /// An earlier error broke the queue.
    Broken,
}

#[derive(Clone, Copy, Default)]
struct Slot {
    /// The next descriptor, on the free list or in the chain.
    next: u16,
    /// Descriptors in the chain that this one heads, zero if it heads none.
    parts: u16,
    /// Bytes of the chain that the device may write.
    room: u32,
}

/// The free list and the chains in flight. Upholds the invariants Shadow and Once.
pub(crate) struct Shadow {
    slots: Box<[Slot]>,
    first_free: u16,
    free: u16,
    in_flight: u16,
}

impl Shadow {
    pub(crate) fn new(size: u16) -> Self {
        let slot = |index: u16| Slot {
            next: (index + 1) % size,
            ..Slot::default()
        };
        Self {
            slots: (0..size).map(slot).collect(),
            first_free: 0,
            free: size,
            in_flight: 0,
        }
    }

    #[inline]
    pub(crate) fn free(&self) -> u16 {
        self.free
    }

    #[inline]
    pub(crate) fn in_flight(&self) -> u16 {
        self.in_flight
    }

    #[inline]
    pub(crate) fn first_free(&self) -> u16 {
        self.first_free
    }

    #[inline]
    pub(crate) fn after(&self, index: u16) -> u16 {
        self.slots[usize::from(index)].next
    }

    /// Takes the first `parts` free descriptors, `1 <= parts <= free`, as one chain that
    /// ends at `last`.
    #[inline]
    pub(crate) fn commit(&mut self, parts: u16, last: u16, room: u32) -> Token {
        let head = self.first_free;
        self.first_free = self.after(last);
        self.free -= parts;
        self.in_flight += 1;
        let slot = &mut self.slots[usize::from(head)];
        (slot.parts, slot.room) = (parts, room);
        Token(head)
    }

    /// The free list follows the last of `parts` descriptors from `head` on.
    fn free_behind(&mut self, head: u16, parts: u16) {
        let last = (1..parts).fold(head, |at, _| self.after(at));
        self.slots[usize::from(last)].next = self.first_free;
    }

    /// Checks a completion and frees its chain.
    #[inline]
    pub(crate) fn complete(&mut self, id: u32, written: u32) -> Result<Token, QueueError> {
        let slot = self
            .slots
            .get_mut(id as usize)
            .ok_or(QueueError::NoSuchChain(id))?;
        let (head, parts, room) = (id as u16, slot.parts, slot.room);
        if parts == 0 {
            return Err(QueueError::NotInFlight(head));
        }
        if written > room {
            return Err(QueueError::WroteTooMuch {
                claimed: written,
                room,
            });
        }
        slot.parts = 0;
        match parts {
            1 => slot.next = self.first_free,
            _ => self.free_behind(head, parts),
        }
        self.first_free = head;
        self.free += parts;
        self.in_flight -= 1;
        Ok(Token(head))
    }
}
