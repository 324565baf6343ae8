//! A pair of rings: what is submitted, and what has ended (section 3.3.1).
//!
//! A completion is new if its phase is that of this turn around the ring; the controller writes it last.
//! As many commands are under way as there are places but one, so neither ring is ever full.
//!
//! To tell the controller how far completions were taken is a write to a register, which under a hypervisor is an exit. So it is told
//! when it might lack room for the ends of what is under way otherwise, and before who takes them waits for an interrupt.

use block::Broken;
use hal::caching::WriteBack;
use hal::owner::Shared;
use hal::{DmaBuf, DmaRequest, DmaSource, HasDeviceAddr, Span};

use crate::entry::{Answer, COMPLETION_BYTES, ENTRY_BYTES, Entry, StatusField};
use crate::error::Error;
use crate::registers::Doorbells;

const PAGE_BYTES: usize = 4096;
const PHASE: u32 = 1 << 16;

/// Both rings of a queue.
pub(crate) struct Ring {
    number: u16,
    entries: u16,
    submissions: DmaBuf<WriteBack, Shared>,
    completions: DmaBuf<WriteBack, Shared>,
    doorbells: Doorbells,
    tail: u16,
    /// The tail that the controller was told.
    told_tail: u16,
    head: u16,
    told_head: u16,
    /// What new completions of this turn have.
    phase: u32,
}

impl Ring {
    pub(crate) fn new(
        memory: &impl DmaSource,
        number: u16,
        entries: u16,
        doorbells: Doorbells,
    ) -> Result<Self, Error> {
        let alloc = |request: DmaRequest| {
            let buffer: DmaBuf = memory.dma_alloc(&request).map_err(|_| Error::OutOfMemory)?;
            Ok(buffer)
        };
        let request = |bytes| DmaRequest::new(bytes * usize::from(entries), PAGE_BYTES);
        let submissions = alloc(request(ENTRY_BYTES).read_only())?;
        let completions = alloc(request(COMPLETION_BYTES))?;
        let ring = Self {
            number,
            entries,
            submissions: submissions.share(),
            completions: completions.share(),
            doorbells,
            tail: 0,
            told_tail: 0,
            head: 0,
            told_head: 0,
            phase: PHASE,
        };
        ring.forget_completions();
        Ok(ring)
    }

    fn forget_completions(&self) {
        for place in 0..usize::from(self.entries) {
            self.completions.write_u32(place * COMPLETION_BYTES + 12, 0);
        }
    }

    /// Begins anew, for a controller that has forgotten it.
    pub(crate) fn clear(&mut self) {
        (0..self.entries).for_each(|place| self.erase(place));
        self.forget_completions();
        (self.tail, self.told_tail, self.head, self.told_head) = (0, 0, 0, 0);
        self.phase = PHASE;
    }

    /// Overwrites a command that has ended.
    pub(crate) fn erase(&self, place: u16) {
        let at = usize::from(place) * ENTRY_BYTES;
        for quad in 0..ENTRY_BYTES / 8 {
            self.submissions.write_u64(at + quad * 8, 0);
        }
    }

    /// Where submissions and completions lie.
    pub(crate) fn spans(&self) -> Option<(Span, Span)> {
        let entries = usize::from(self.entries);
        Some((
            self.submissions.dev_addr(0, entries * ENTRY_BYTES)?,
            self.completions.dev_addr(0, entries * COMPLETION_BYTES)?,
        ))
    }

    /// The number under which the controller knows it.
    pub(crate) fn number(&self) -> u16 {
        self.number
    }

    pub(crate) fn entries(&self) -> u16 {
        self.entries
    }

    /// Adds a command, and says at which place; fewer than [`entries`](Self::entries) are under way with it.
    pub(crate) fn push(&mut self, entry: &Entry, id: u16) -> u16 {
        let place = self.tail;
        let bytes = entry.quads(id).map(u64::to_le_bytes);
        let at = usize::from(place) * ENTRY_BYTES;
        self.submissions.copy_in(at, bytes.as_flattened());
        self.tail = self.after(place);
        place
    }

    /// Shows the controller what was added, and before that how far we are, if it had no room for the end of each otherwise.
    pub(crate) fn publish(&mut self) {
        if self.tail != self.told_tail {
            let (untold, under_way) = (
                self.distance(self.told_head, self.head),
                self.distance(self.head, self.tail),
            );
            if untold + under_way >= self.entries {
                self.tell_head();
            }
            self.doorbells.tail.ring(self.tail);
            self.told_tail = self.tail;
        }
    }

    /// Whether something has ended.
    ///
    /// If there is none the controller hears how far we are: it interrupts nobody when it has no room.
    pub(crate) fn arm(&mut self) -> bool {
        let word = self.completions.acquire_u32(self.at_head() + 12);
        let has_ended = word & PHASE == self.phase;
        if !has_ended {
            self.tell_head();
        }
        has_ended
    }

    /// The next completion.
    pub(crate) fn take(&mut self) -> Result<Option<Answer>, Broken> {
        let at = self.at_head();
        let word = self.completions.acquire_u32(at + 12);
        if word & PHASE != self.phase {
            return Ok(None);
        }
        let queue = self.completions.read_u32(at + 8);
        let (taken_up_to, number) = (queue as u16, (queue >> 16) as u16);
        if taken_up_to >= self.entries || number != self.number {
            return Err(Broken);
        }
        self.head = self.after(self.head);
        if self.head == 0 {
            self.phase ^= PHASE;
        }
        Ok(Some(Answer {
            id: word as u16,
            status: StatusField((word >> 17) as u16),
            result: self.completions.read_u32(at),
        }))
    }

    fn tell_head(&mut self) {
        if self.head != self.told_head {
            self.doorbells.head.ring(self.head);
            self.told_head = self.head;
        }
    }

    /// Places from one to another. Each command that was added has one completion, so those under way lie between `head` and `tail`.
    fn distance(&self, from: u16, to: u16) -> u16 {
        match to.checked_sub(from) {
            Some(distance) => distance,
            None => to + self.entries - from,
        }
    }

    fn at_head(&self) -> usize {
        usize::from(self.head) * COMPLETION_BYTES
    }

    fn after(&self, place: u16) -> u16 {
        match place + 1 {
            end if end == self.entries => 0,
            next => next,
        }
    }

    /// The controller has forgotten it.
    pub(crate) fn retire(&mut self) {
        self.submissions.retire();
        self.completions.retire();
    }
}
