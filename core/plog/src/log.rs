//! The log while it is written: what is appended, what the device is told, how that ended.
//!
//! ```text
//!  append ──► waiting ──next_command──► under way ──complete──► accepted ──flush sent later──► durable
//!  trim   ──► head in memory ──anchor──► under way ──► accepted ──flush──► the space is free
//! ```
//! The caller hands each [`Command`] to the device and its end to [`Log::complete`], in any order, and
//! asks for the next commands after each append and each end.

use alloc::vec::Vec;
use core::ops::Range;

use block::{Done, Durability, Failure};

use crate::anchor::Anchor;
use crate::cursor::Cursor;
use crate::entry::{HEADER_BYTES, Header, sum_of};
use crate::flight::{ENTRIES_MAX, Flight, Part, Settled, Slot};
use crate::planted::{Bug, planted};
use crate::shape::{Place, Sequence, Shape};

/// What the caller of an append waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Promise {
    /// That the device has it: no flush is sent on its account.
    Accepted,
    /// That it survives: a flush is sent as soon as it helps.
    Durable,
}

/// An entry that was appended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ticket {
    /// Where it begins.
    pub place: Place,
    /// Where the next one begins.
    pub end: Place,
}

/// Why nothing was appended. Nothing has changed, and nothing was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AppendError {
    /// It is longer than [`Shape::entry_bytes_max`].
    TooLong,
    /// The ring has no room. What was trimmed counts when the anchor that says so is durable.
    Full,
    /// Too much is under way: again when something has become durable.
    Busy,
    /// A write or a flush failed; nothing is appended any more.
    Failed(Failure),
}

/// What was to be trimmed is not durable, or not of this log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NotDurable;

/// The end of something that was not under way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stray;

/// Which command has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CommandId {
    /// A write of an entry; two of an entry that passes the ring's end.
    Entry {
        /// Which entry.
        sequence: Sequence,
        /// 0 or 1.
        part: u8,
    },
    /// The write of an anchor.
    Anchor,
    /// The flush.
    Flush,
}

/// What the device is to be told.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Command {
    /// Blocks of an entry, out of the caller's buffers: header, bytes, and what fills the last block.
    Write {
        /// Its name.
        id: CommandId,
        /// The first block.
        block: u64,
        /// Which bytes of the entry, its header counted, rounded up to whole blocks.
        bytes: Range<usize>,
        /// Whether it is to be forced.
        durability: Durability,
    },
    /// One block of the log's own.
    Anchor {
        /// Which block.
        block: u64,
        /// What is to be in it.
        bytes: Vec<u8>,
        /// Whether it is to be forced.
        durability: Durability,
    },
    /// Brings to the medium what was complete when it was sent.
    Flush,
}

/// An anchor on its way.
#[derive(Debug)]
struct Anchoring {
    anchor: Anchor,
    part: Part,
}

/// A log that can be appended to.
#[derive(Debug)]
pub struct Log {
    shape: Shape,
    /// The one that is durable.
    anchor: Anchor,
    anchoring: Option<Anchoring>,
    is_anchor_wanted: bool,
    /// The oldest entry that is not trimmed.
    head: Place,
    durable: Place,
    end: Place,
    flight: Flight,
    is_flushing: bool,
    flushes_sent: u64,
    can_force: bool,
    /// Writes of entries that were handed out and have not ended.
    writes_under_way: usize,
    /// Entries before are of the group that is handed out, and whether its writes are forced.
    group_end: Sequence,
    is_group_forced: bool,
    failure: Option<Failure>,
}

/// So many bytes are a group that is worth to be waited for.
const GROUP_BYTES_MAX: u64 = 64 * 1024;

impl Log {
    pub(crate) fn new(shape: Shape, anchor: Anchor) -> Self {
        Self {
            shape,
            anchoring: None,
            is_anchor_wanted: false,
            head: anchor.head,
            durable: anchor.mark,
            end: anchor.mark,
            anchor,
            flight: Flight::default(),
            is_flushing: false,
            flushes_sent: 0,
            can_force: false,
            writes_under_way: 0,
            group_end: 0,
            is_group_forced: false,
            failure: None,
        }
    }

    /// From now on writes are forced that nothing else is under way beside: the device can. What is appended meanwhile is the next
    /// group, as long as it is small: its writes lie behind each other, so whoever carries them out makes one of them.
    pub fn force_lone_writes(&mut self) {
        self.can_force = true;
    }

    /// How the area is divided.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// The number that binds its entries to it.
    pub fn id(&self) -> u64 {
        self.anchor.id
    }

    /// The oldest entry.
    pub fn head(&self) -> Place {
        self.head
    }

    /// Behind the last entry that was appended.
    pub fn end(&self) -> Place {
        self.end
    }

    /// Entries before survive.
    pub fn durable(&self) -> Place {
        self.durable
    }

    /// Entries before are with the device's cache at least; their buffers are the caller's again.
    pub fn accepted(&self) -> Place {
        self.flight.accepted().unwrap_or(self.durable)
    }

    /// The writes of entries before were handed out.
    pub fn submitted(&self) -> Place {
        self.flight.submitted().unwrap_or(self.durable)
    }

    /// Entries before are trimmed for good: a loss of power does not bring them back.
    pub fn trimmed(&self) -> Place {
        self.anchor.head
    }

    /// Why it is not appended to any more.
    pub fn failure(&self) -> Option<Failure> {
        self.failure
    }

    /// Blocks that entries may still take.
    pub fn free_blocks(&self) -> u64 {
        let kept = match planted(Bug::ReusedEarly) {
            true => self.head,
            false => self.anchor.head,
        };
        (kept.position + self.shape.ring_blocks()).saturating_sub(self.end.position)
    }

    /// Appends the bytes in `parts`. The header is filled in; from now until the entry is accepted
    /// it and the parts stay as they are.
    pub fn append(
        &mut self,
        tag: u8,
        header: &mut [u8; HEADER_BYTES],
        parts: &[&[u8]],
        promise: Promise,
    ) -> Result<Ticket, AppendError> {
        let bytes = parts.iter().map(|part| part.len()).sum::<usize>();
        let blocks = self.room_for(bytes)?;
        let place = self.end;
        let fields = Header {
            id: self.anchor.id,
            position: place.position,
            sequence: place.sequence,
            epoch: self.anchor.epoch,
            durable: self.durable.sequence,
            tag,
            bytes: bytes as u32,
            payload_sum: sum_of(parts),
        };
        fields.encode(header);
        self.end = fields.end(place, self.shape);
        let (_, behind) = self.shape.block_at(place.position);
        let second = match blocks > behind {
            true => Part::Waiting,
            false => Part::None,
        };
        self.flight.push(Slot {
            start: place,
            end: self.end,
            is_wanted: promise == Promise::Durable,
            parts: [Part::Waiting, second],
        });
        Ok(Ticket {
            place,
            end: self.end,
        })
    }

    /// The blocks of an entry for which there is room.
    fn room_for(&mut self, bytes: usize) -> Result<u64, AppendError> {
        if let Some(failure) = self.failure {
            return Err(AppendError::Failed(failure));
        }
        if bytes > self.shape.entry_bytes_max() {
            return Err(AppendError::TooLong);
        }
        let blocks = self.shape.blocks_of(bytes);
        if blocks > self.free_blocks() {
            self.is_anchor_wanted |= self.head.position > self.anchor.head.position;
            return Err(AppendError::Full);
        }
        let end = self.end.position + blocks;
        let is_busy = end - self.durable.position > self.shape.window_blocks()
            || end - self.anchor.mark.position > self.shape.scan_blocks_max()
            || self.flight.len() >= ENTRIES_MAX;
        match is_busy {
            true => {
                // Else it would stay so if nobody waits for what is under way.
                self.want_durable(self.end);
                Err(AppendError::Busy)
            }
            false => Ok(blocks),
        }
    }

    /// Somebody waits now for all entries before this place.
    pub fn want_durable(&mut self, place: Place) {
        if let Some(last) = place.sequence.checked_sub(1) {
            self.flight.want(last);
        }
    }

    /// Entries before `head` are not needed any more. They may come back with a loss of power until
    /// [`trimmed`](Self::trimmed) says otherwise; [`anchor_soon`](Self::anchor_soon) does not wait for the log to need the space.
    pub fn trim(&mut self, head: Place) -> Result<(), NotDurable> {
        if head > self.durable || head.position > self.durable.position {
            return Err(NotDurable);
        }
        if head > self.head {
            self.head = head;
        }
        Ok(())
    }

    /// An anchor is written as soon as can be.
    pub fn anchor_soon(&mut self) {
        self.is_anchor_wanted = true;
    }

    /// What the device is to be told next.
    pub fn next_command(&mut self) -> Option<Command> {
        if self.failure.is_some() {
            return None;
        }
        let command = self.next_write().or_else(|| self.next_anchor());
        command.or_else(|| self.next_flush())
    }

    /// Whether the first entry that waits is to be handed out now: with it begins a group of all that wait.
    fn begins_group(&mut self) -> bool {
        let Some((slot, _)) = self.flight.next_waiting() else {
            return false;
        };
        let start = slot.start;
        if start.sequence < self.group_end {
            return true;
        }
        let blocks = self.end.position - start.position;
        let is_small = blocks * u64::from(self.shape.block_bytes()) <= GROUP_BYTES_MAX;
        if is_small && (self.writes_under_way != 0 || self.is_flushing) {
            return false;
        }
        self.group_end = self.end.sequence;
        // A forced write says nothing of those before it.
        self.is_group_forced = is_small && start.sequence == self.durable.sequence;
        true
    }

    fn next_write(&mut self) -> Option<Command> {
        if self.can_force && !self.begins_group() {
            return None;
        }
        let is_forced = self.can_force && self.is_group_forced;
        let (slot, part) = self.flight.next_waiting()?;
        let (block, behind) = self.shape.block_at(slot.start.position);
        let size = self.shape.block_bytes() as usize;
        let blocks = slot.end.position - slot.start.position;
        let cut = behind.min(blocks) as usize * size;
        let (block, bytes) = match part {
            0 => (block, 0..cut),
            _ => (self.shape.block_at(0).0, cut..blocks as usize * size),
        };
        if let Some(part) = slot.parts.get_mut(part) {
            *part = Part::UnderWay;
        }
        self.writes_under_way += 1;
        Some(Command::Write {
            id: CommandId::Entry {
                sequence: slot.start.sequence,
                part: part as u8,
            },
            block,
            bytes,
            durability: match is_forced && slot.is_wanted {
                true => Durability::Forced,
                false => Durability::Volatile,
            },
        })
    }

    fn next_anchor(&mut self) -> Option<Command> {
        if self.anchoring.is_some() || !self.is_anchor_due() {
            return None;
        }
        self.is_anchor_wanted = false;
        let mark = match planted(Bug::MarkAhead) {
            true => self.end,
            false => self.durable,
        };
        let anchor = Anchor {
            generation: self.anchor.generation + 1,
            head: self.head,
            mark,
            ..self.anchor
        };
        self.anchoring = Some(Anchoring {
            anchor,
            part: Part::UnderWay,
        });
        Some(Command::Anchor {
            block: anchor.block(),
            bytes: anchor.encode(self.shape),
            durability: match self.can_force {
                true => Durability::Forced,
                false => Durability::Volatile,
            },
        })
    }

    fn is_anchor_due(&self) -> bool {
        let marked = self.durable.position - self.anchor.mark.position;
        let trimmed = self.head.position - self.anchor.head.position;
        let far = self.shape.mark_blocks();
        let is_news = self.head != self.anchor.head || self.durable != self.anchor.mark;
        marked >= far || trimmed >= far || (self.is_anchor_wanted && is_news)
    }

    fn next_flush(&mut self) -> Option<Command> {
        let is_anchor_accepted = matches!(
            self.anchoring,
            Some(Anchoring {
                part: Part::Accepted(..),
                ..
            })
        );
        let is_wanted = is_anchor_accepted || self.flight.is_flush_wanted();
        if self.is_flushing || !is_wanted {
            return None;
        }
        self.is_flushing = true;
        self.flushes_sent += 1;
        Some(Command::Flush)
    }

    /// A command has ended. What fails ends the log.
    pub fn complete(&mut self, id: CommandId, result: Result<Done, Failure>) -> Result<(), Stray> {
        match result {
            Err(failure) if !planted(Bug::FailureIgnored) => {
                self.failure.get_or_insert(failure);
                Ok(())
            }
            Err(_) => {
                self.is_flushing &= id != CommandId::Flush;
                Ok(())
            }
            Ok(done) => self.succeeded(id, done),
        }
    }

    fn succeeded(&mut self, id: CommandId, done: Done) -> Result<(), Stray> {
        let sent = self.flushes_sent;
        let is_known = match (id, done) {
            (CommandId::Flush, Done::Flushed(flushed)) if self.is_flushing => {
                self.is_flushing = false;
                let anchoring = self.anchoring.as_mut();
                let anchor = anchoring.map(|anchoring| anchoring.part.settle(&flushed, sent));
                let entries = self.flight.settle(&flushed, sent);
                if anchor == Some(Settled::Condemned) || entries == Settled::Condemned {
                    self.failure.get_or_insert(Failure::Medium);
                }
                true
            }
            (CommandId::Entry { sequence, part }, done) => {
                let slot = self.flight.slot(sequence);
                let part = slot.and_then(|slot| slot.parts.get_mut(usize::from(part)));
                let has_ended = part.is_some_and(|part| part.ended(done, sent));
                self.writes_under_way -= usize::from(has_ended);
                has_ended
            }
            (CommandId::Anchor, done) => {
                let anchoring = self.anchoring.as_mut();
                anchoring.is_some_and(|anchoring| anchoring.part.ended(done, sent))
            }
            _ => false,
        };
        self.advance();
        is_known.then_some(()).ok_or(Stray)
    }

    /// Draws the consequences of what has become durable.
    fn advance(&mut self) {
        if self.failure.is_some() {
            return;
        }
        if let Some(end) = self.flight.pop_durable() {
            self.durable = end;
        }
        let is_there = |anchoring: &mut Anchoring| match planted(Bug::AnchorNotFlushed) {
            true => anchoring.part.is_accepted(),
            false => matches!(anchoring.part, Part::Durable),
        };
        if let Some(anchoring) = self.anchoring.take_if(is_there) {
            self.anchor = anchoring.anchor;
        }
    }

    /// Reads what is durable, from the oldest entry on.
    pub fn cursor(&self) -> Cursor {
        self.cursor_at(self.head)
    }

    /// The same from a place on.
    pub fn cursor_at(&self, place: Place) -> Cursor {
        Cursor {
            id: self.anchor.id,
            shape: self.shape,
            place,
            end: self.durable,
        }
    }
}
