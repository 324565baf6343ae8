//! Chains of one part between two that are the same each time: a header before it, and a status behind.
//!
//! A chain's table lies where its token says, so the two ends, and the ring's descriptor of the table, are written once. A
//! chain of another shape writes over them; the next that is framed puts them back.
//!
//! **Framed**: a queue with frames has no chains but in tables, so the ring's descriptors lead to those.

use alloc::boxed::Box;

use super::{AddError, Part, Queue, Token};
use crate::layout::{DESC_BYTES, DESC_INDIRECT, DESC_NEXT, write_descriptor};
use hal::HasDeviceAddr;

/// Parts of a framed chain.
pub(super) const FRAMED_PARTS: u16 = 3;

/// What stands around the part of a token's chain.
pub(super) struct Frame {
    first: Part,
    last: Part,
    /// Bytes of both that the device may write.
    room: u32,
    /// Whether both stand in the table, and the ring leads to it.
    is_there: bool,
}

impl Queue {
    /// Says what stands around the part of each token's chain; `None` if there is none for one, or tables have no room.
    pub fn set_frames(&mut self, ends: impl Fn(Token) -> Option<(Part, Part)>) -> Option<()> {
        if self.indirect_parts < FRAMED_PARTS {
            return None;
        }
        let frame = |index| {
            let (first, last) = ends(Token(index))?;
            let room = first.unpack().2.saturating_add(last.unpack().2);
            Some(Frame {
                first,
                last,
                room,
                is_there: false,
            })
        };
        let frames: Option<Box<[Frame]>> = (0..self.size()).map(frame).collect();
        self.frames = frames?;
        Some(())
    }

    /// The token of the chain that is added next; `None` while there is no room for one.
    #[inline]
    pub fn next_token(&self) -> Option<Token> {
        let is_possible = !self.broken && self.shadow.free() != 0;
        is_possible.then(|| Token(self.shadow.first_free()))
    }

    /// Adds a part between the ends of its token, in a table.
    #[inline]
    pub fn add_framed(&mut self, part: Part) -> Result<Token, AddError> {
        let Token(head) = self.next_token().ok_or(match self.broken {
            true => AddError::Broken,
            false => AddError::Full,
        })?;
        let frame = self.frames.get(usize::from(head));
        if !frame.ok_or(AddError::TooManyParts)?.is_there {
            self.write_frame(head)?;
        }
        self.add_framed_by(part, |_| ())
            .ok_or(AddError::TooManyParts)
    }

    /// The same where the ends of its token stand already, which `fill` is to fill; else `None`, as without room.
    #[inline]
    pub fn add_framed_by(&mut self, part: Part, fill: impl FnOnce(Token)) -> Option<Token> {
        let token = self.next_token()?;
        let frame = self.frames.get(token.index())?;
        let tables = self.tables.as_ref()?;
        if !frame.is_there {
            return None;
        }
        fill(token);
        let (span, access, room) = part.unpack();
        let at = self.table_at(token.0) + DESC_BYTES;
        write_descriptor(tables, at, span, access | DESC_NEXT, FRAMED_PARTS - 1);
        let room = room.saturating_add(frame.room);
        Some(self.commit(1, token.0, room))
    }

    /// Where the table of a head begins.
    #[inline]
    pub(super) fn table_at(&self, head: u16) -> usize {
        usize::from(head) * usize::from(self.indirect_parts) * DESC_BYTES
    }

    /// A chain of another shape lies in the table.
    #[inline]
    pub(super) fn forget_frame(&mut self, head: u16) {
        if let Some(frame) = self.frames.get_mut(usize::from(head)) {
            frame.is_there = false;
        }
    }

    #[cold]
    fn write_frame(&mut self, head: u16) -> Result<(), AddError> {
        let base = self.table_at(head);
        let tables = self.tables.as_ref().ok_or(AddError::TooManyParts)?;
        let frame = self.frames.get_mut(usize::from(head));
        let frame = frame.ok_or(AddError::TooManyParts)?;
        let last_at = base + usize::from(FRAMED_PARTS - 1) * DESC_BYTES;
        let table = tables.dev_addr(base, usize::from(FRAMED_PARTS) * DESC_BYTES);
        let table = table.ok_or(AddError::Empty)?;
        let ((first, access, _), (last, last_access, _)) =
            (frame.first.unpack(), frame.last.unpack());
        write_descriptor(tables, base, first, access | DESC_NEXT, 1);
        write_descriptor(tables, last_at, last, last_access, 0);
        self.rings.write_descriptor(head, table, DESC_INDIRECT, 0);
        frame.is_there = true;
        Ok(())
    }
}
