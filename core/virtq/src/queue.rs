//! The queue: chains in, completions out, doorbells and interrupts only when needed.

mod framed;

use alloc::boxed::Box;

use crate::layout::{
    Addresses, DESC_BYTES, DESC_INDIRECT, DESC_NEXT, DESC_WRITE, RING_QUIET, Rings, SIZE_MAX,
    SharedBuf, shared, write_descriptor,
};
use crate::shadow::{AddError, QueueError, Shadow, Token};
use core::sync::atomic::{Ordering, fence};
use framed::Frame;
use hal::{DmaSource, HasDeviceAddr, Span};

/// How a queue is to be made.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Descriptors; a power of two, at most [`SIZE_MAX`] and what the device offers.
    pub size: u16,
    /// `VIRTIO_F_EVENT_IDX` was negotiated.
    pub event_index: bool,
    /// The most parts of a chain given to [`Queue::add_indirect`]; zero if
    /// `VIRTIO_F_INDIRECT_DESC` was not negotiated or is not wanted.
    pub indirect_parts: u16,
}

/// One piece of a chain. Those that the device reads come before those it writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// The device reads this.
    Read(Span),
    /// The device writes this.
    Write(Span),
}

impl Part {
    /// The span, the descriptor's flag, and the bytes that the device may write.
    #[inline]
    fn unpack(self) -> (Span, u16, u32) {
        match self {
            Part::Read(span) => (span, 0, 0),
            Part::Write(span) => (span, DESC_WRITE, span.len()),
        }
    }
}

/// A completed chain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Used {
    /// Which.
    pub token: Token,
    /// Bytes the device says it wrote; never more than there was room for.
    pub written: u32,
}

/// One virtqueue, driver's side.
pub struct Queue {
    rings: Rings,
    shadow: Shadow,
    /// A table of `indirect_parts` descriptors for each possible head.
    tables: Option<SharedBuf>,
    indirect_parts: u16,
    /// Of each possible head, if they were said.
    frames: Box<[Frame]>,
    event_index: bool,
    broken: bool,
    /// The available index to come, as told to the device, and as of the last doorbell.
    added: u16,
    published: u16,
    /// The used index that we took up to, and the last that we read.
    taken: u16,
    used: u16,
}

impl Queue {
    /// A queue with all descriptors free and interrupts off; `None` if memory is short
    /// or the size is not legal.
    pub fn new(memory: &impl DmaSource, config: Config) -> Option<Self> {
        if !config.size.is_power_of_two() || config.size > SIZE_MAX {
            return None;
        }
        let table_bytes = usize::from(config.indirect_parts) * DESC_BYTES;
        let tables = match table_bytes {
            0 => None,
            bytes => Some(shared(
                memory,
                bytes * usize::from(config.size),
                DESC_BYTES,
            )?),
        };
        let queue = Self {
            rings: Rings::new(memory, config.size)?,
            shadow: Shadow::new(config.size),
            tables,
            indirect_parts: config.indirect_parts,
            frames: Box::default(),
            event_index: config.event_index,
            broken: false,
            added: 0,
            published: 0,
            taken: 0,
            used: 0,
        };
        queue
            .rings
            .write_available_flags(if config.event_index { 0 } else { RING_QUIET });
        queue.rings.write_used_event(u16::MAX);
        Some(queue)
    }

    /// The device has been reset: nothing moves any more, and the rings are freed with
    /// the queue. A queue that is dropped before leaks them, for the device may write.
    pub fn retire(&mut self) {
        self.broken = true;
        self.rings.retire();
        if let Some(tables) = &mut self.tables {
            tables.retire();
        }
    }

    /// Descriptors in all.
    pub fn size(&self) -> u16 {
        self.rings.size()
    }

    /// Where the rings lie; `None` is impossible for a queue that was made.
    pub fn addresses(&self) -> Option<Addresses> {
        self.rings.addresses()
    }

    /// Free descriptors.
    #[inline]
    pub fn free(&self) -> u16 {
        self.shadow.free()
    }

    /// Chains that the device has, published or not.
    #[inline]
    pub fn in_flight(&self) -> u16 {
        self.shadow.in_flight()
    }

    /// The most parts that [`add_indirect`](Self::add_indirect) takes, zero if none.
    #[inline]
    pub fn indirect_parts(&self) -> u16 {
        self.indirect_parts
    }

    /// Adds a chain of one part, as most are: as [`add`](Self::add), without a walk.
    #[inline]
    pub fn add_one(&mut self, part: Part) -> Result<Token, AddError> {
        debug_assert!(self.frames.is_empty(), "all chains lie in tables (Framed)");
        if self.broken {
            return Err(AddError::Broken);
        }
        if self.shadow.free() == 0 {
            return Err(AddError::Full);
        }
        let at = self.shadow.first_free();
        let (span, access, room) = part.unpack();
        self.rings.write_descriptor(at, span, access, 0);
        Ok(self.commit(1, at, room))
    }

    /// Adds a chain, one descriptor a part. The device sees it after
    /// [`publish`](Self::publish).
    #[inline]
    pub fn add(&mut self, parts: impl IntoIterator<Item = Part>) -> Result<Token, AddError> {
        debug_assert!(self.frames.is_empty(), "all chains lie in tables (Framed)");
        if self.broken {
            return Err(AddError::Broken);
        }
        let mut parts = parts.into_iter();
        let mut part = parts.next().ok_or(AddError::Empty)?;
        let (mut at, mut count, mut room) = (self.shadow.first_free(), 1u16, 0u32);
        loop {
            if count > self.shadow.free() {
                return Err(AddError::Full);
            }
            let (span, access, writable) = part.unpack();
            room = room.saturating_add(writable);
            let Some(following) = parts.next() else {
                self.rings.write_descriptor(at, span, access, 0);
                break;
            };
            let next = self.shadow.after(at);
            self.rings
                .write_descriptor(at, span, access | DESC_NEXT, next);
            (at, count, part) = (next, count + 1, following);
        }
        Ok(self.commit(count, at, room))
    }

    /// Adds a chain that takes one descriptor however many parts it has: the parts stand
    /// in a table beside the ring. Costs the device one more fetch.
    #[inline]
    pub fn add_indirect(
        &mut self,
        parts: impl IntoIterator<Item = Part>,
    ) -> Result<Token, AddError> {
        if self.broken {
            return Err(AddError::Broken);
        }
        if self.shadow.free() == 0 {
            return Err(AddError::Full);
        }
        let head = self.shadow.first_free();
        self.forget_frame(head);
        let tables = self.tables.as_ref().ok_or(AddError::TooManyParts)?;
        let base = self.table_at(head);
        let (mut count, mut room) = (0u16, 0u32);
        let mut parts = parts.into_iter();
        let mut part = parts.next().ok_or(AddError::Empty)?;
        loop {
            if count == self.indirect_parts {
                return Err(AddError::TooManyParts);
            }
            let (span, access, writable) = part.unpack();
            room = room.saturating_add(writable);
            let following = parts.next();
            let more = if following.is_some() { DESC_NEXT } else { 0 };
            let at = base + usize::from(count) * DESC_BYTES;
            write_descriptor(tables, at, span, access | more, count + 1);
            count += 1;
            match following {
                Some(following) => part = following,
                None => break,
            }
        }
        let table = tables
            .dev_addr(base, usize::from(count) * DESC_BYTES)
            .ok_or(AddError::Empty)?;
        self.rings.write_descriptor(head, table, DESC_INDIRECT, 0);
        Ok(self.commit(1, head, room))
    }

    #[inline]
    fn commit(&mut self, parts: u16, last: u16, room: u32) -> Token {
        let token = self.shadow.commit(parts, last, room);
        self.rings.write_available(self.added, token.0);
        self.added = self.added.wrapping_add(1);
        token
    }

    /// Shows the device all chains added since the last call; returns whether it must be
    /// told with a doorbell.
    #[must_use = "the device may sleep until its doorbell is rung"]
    pub fn publish(&mut self) -> bool {
        let (old, new) = (self.published, self.added);
        if old == new {
            return false;
        }
        self.rings.publish_available(new);
        self.published = new;
        // The index must be visible before we look whether the device went to sleep: it
        // does the same two steps in the other order.
        fence(Ordering::SeqCst);
        if self.event_index {
            passes(self.rings.available_event(), old, new)
        } else {
            self.rings.used_flags() & RING_QUIET == 0
        }
    }

    /// The next completion, if there is one.
    #[inline]
    pub fn take(&mut self) -> Result<Option<Used>, QueueError> {
        if self.taken == self.used && !self.refresh()? {
            return Ok(None);
        }
        let (id, written) = self.rings.used_entry(self.taken);
        match self.shadow.complete(id, written) {
            Ok(token) => {
                self.taken = self.taken.wrapping_add(1);
                Ok(Some(Used { token, written }))
            }
            Err(error) => Err(self.fail(error)),
        }
    }

    /// Reads the used index; returns whether there is anything to take.
    #[inline]
    fn refresh(&mut self) -> Result<bool, QueueError> {
        if self.broken {
            return Err(QueueError::Broken);
        }
        let used = self.rings.used_index();
        let claimed = used.wrapping_sub(self.taken);
        let in_flight = self.shadow.in_flight();
        if claimed > in_flight {
            return Err(self.fail(QueueError::UsedIndexJumped { claimed, in_flight }));
        }
        self.used = used;
        Ok(claimed != 0)
    }

    #[cold]
    fn fail(&mut self, error: QueueError) -> QueueError {
        self.broken = true;
        self.used = self.taken;
        error
    }

    /// Whether the device lied earlier; nothing moves any more.
    pub fn is_broken(&self) -> bool {
        self.broken
    }

    /// Asks for an interrupt at the next completion. Returns whether completions are
    /// waiting already, for which no interrupt may come: take them and arm again.
    pub fn arm(&mut self) -> bool {
        if self.event_index {
            self.rings.write_used_event(self.taken);
        } else {
            self.rings.write_available_flags(0);
        }
        // As in `publish`: first our wish, then the look at the device's progress.
        fence(Ordering::SeqCst);
        self.rings.used_index() != self.taken
    }

    /// Whether completions are waiting, without a wish for interrupts.
    pub fn has_completions(&self) -> bool {
        !self.broken && self.rings.used_index() != self.taken
    }

    /// Asks for no more interrupts; a few may still come. With event indices, one that has
    /// been passed causes no second interrupt.
    pub fn disarm(&mut self) {
        if self.event_index {
            self.rings.write_used_event(self.taken.wrapping_sub(1));
        } else {
            self.rings.write_available_flags(RING_QUIET);
        }
    }
}

/// Whether moving an index from `old` to `new` goes past `event` (section 2.7.10.1).
#[inline]
fn passes(event: u16, old: u16, new: u16) -> bool {
    new.wrapping_sub(event).wrapping_sub(1) < new.wrapping_sub(old)
}
