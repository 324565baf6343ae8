//! The kernel's end of the completion queue, and the list of what found no room in it.
//!
//! Invariants: `tail` is the kernel's own. While the list is not empty, everything joins it, so
//! that completions keep their order. The list has room for whatever [`CompletionQueue::reserve`]
//! promised, so [`CompletionQueue::post`] needs no memory.

use alloc::collections::{TryReserveError, VecDeque};

use bitflags::bitflags;

use base::SharedMemory;

use crate::geometry::{CQE_BYTES, Geometry, SqFlags, offset};

bitflags! {
    /// What comes with a completion (IORING_CQE_F_*); the buffer's number stands above.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
    pub struct CqeFlags: u32 {
        /// The upper half is the number of a buffer.
        const BUFFER = 1;
        /// The request goes on: more completions follow.
        const MORE = 2;
        /// The socket has more to read.
        const SOCK_NONEMPTY = 4;
        /// All other bits.
        const NUMBER = 0xffff_0000;
    }
}

impl CqeFlags {
    /// Tells that the bytes are in the buffer with this number.
    pub fn buffer(number: u16) -> Self {
        Self::BUFFER | Self::from_bits_retain(u32::from(number) << 16)
    }
}

/// A completion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cqe {
    /// What the program called the request.
    pub user_data: u64,
    /// What came of it; negative for an error.
    pub result: i32,
    /// What else is to be known.
    pub flags: CqeFlags,
}

impl Cqe {
    fn bytes(&self) -> [u8; CQE_BYTES] {
        let mut bytes = [0; CQE_BYTES];
        let (name, rest) = bytes.split_at_mut(8);
        let (result, flags) = rest.split_at_mut(4);
        name.copy_from_slice(&self.user_data.to_ne_bytes());
        result.copy_from_slice(&self.result.to_ne_bytes());
        flags.copy_from_slice(&self.flags.bits().to_ne_bytes());
        bytes
    }
}

/// The completion queue.
#[derive(Debug)]
pub struct CompletionQueue {
    geometry: Geometry,
    tail: u32,
    overflow: VecDeque<Cqe>,
    promised: usize,
    posted: u32,
    sq_flags: SqFlags,
}

impl CompletionQueue {
    /// An empty one.
    pub fn new(geometry: Geometry) -> Self {
        Self::at(geometry, 0)
    }

    /// One that another has posted in before, up to `tail`.
    pub fn at(geometry: Geometry, tail: u32) -> Self {
        Self {
            geometry,
            tail,
            overflow: VecDeque::new(),
            promised: 0,
            posted: 0,
            sq_flags: SqFlags::empty(),
        }
    }

    /// Makes room for the last completion of one more request.
    pub fn reserve(&mut self) -> Result<(), TryReserveError> {
        self.overflow.try_reserve(self.promised + 1)?;
        self.promised += 1;
        Ok(())
    }

    /// A request ends without a completion.
    pub fn release(&mut self) {
        self.promised = self.promised.saturating_sub(1);
    }

    /// Requests that will post, and completions that wait for room.
    pub fn owed(&self) -> usize {
        self.promised + self.overflow.len()
    }

    /// Completions so far; those that timeouts count.
    pub fn posted(&self) -> u32 {
        self.posted
    }

    /// Whether completions wait for room.
    pub fn has_overflow(&self) -> bool {
        !self.overflow.is_empty()
    }

    /// Completions in the ring that the program has not taken; all of them where its head is
    /// nonsense.
    pub fn ready(&self, rings: &impl SharedMemory) -> u32 {
        let ready = self.tail.wrapping_sub(rings.load(offset::CQ_HEAD));
        ready.min(self.geometry.cq_entries())
    }

    fn has_room(&self, rings: &impl SharedMemory) -> bool {
        self.ready(rings) < self.geometry.cq_entries()
    }

    /// Posts the last completion of a request, in the list if there is no room.
    pub fn post(&mut self, rings: &impl SharedMemory, cqe: Cqe) {
        self.release();
        if self.overflow.is_empty() && self.has_room(rings) {
            self.write(rings, cqe);
        } else {
            self.overflow.push_back(cqe);
            self.set_flag(rings, SqFlags::CQ_OVERFLOW, true);
        }
        self.posted = self.posted.wrapping_add(1);
    }

    /// Posts a completion of a request that goes on; false if there is no room, and the request
    /// must end: nothing is kept that a program does not take.
    #[must_use]
    pub fn post_more(&mut self, rings: &impl SharedMemory, cqe: Cqe) -> bool {
        let has_room = self.overflow.is_empty() && self.has_room(rings);
        if has_room {
            self.write(rings, cqe);
            self.posted = self.posted.wrapping_add(1);
        }
        has_room
    }

    /// Moves what waits into the ring, as far as there is room; whether all of it went.
    pub fn flush(&mut self, rings: &impl SharedMemory) -> bool {
        while self.has_room(rings)
            && let Some(cqe) = self.overflow.pop_front()
        {
            self.write(rings, cqe);
        }
        let is_done = self.overflow.is_empty();
        if is_done && self.sq_flags.contains(SqFlags::CQ_OVERFLOW) {
            self.set_flag(rings, SqFlags::CQ_OVERFLOW, false);
        }
        is_done
    }

    /// Says something in the submission ring's flags.
    pub fn set_flag(&mut self, rings: &impl SharedMemory, flag: SqFlags, on: bool) {
        self.sq_flags.set(flag, on);
        rings.store(offset::SQ_FLAGS, self.sq_flags.bits());
    }

    fn write(&mut self, rings: &impl SharedMemory, cqe: Cqe) {
        let slot = (self.tail & (self.geometry.cq_entries() - 1)) as usize;
        rings.write(offset::CQES + slot * CQE_BYTES, &cqe.bytes());
        self.tail = self.tail.wrapping_add(1);
        rings.store(offset::CQ_TAIL, self.tail);
    }
}
