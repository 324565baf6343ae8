//! The urgent byte of a stream (send(2), MSG_OOB).
//!
//! It lies in the stream where it was sent. A read that comes to it stops before it; the next
//! one goes on behind it, for it is received by a call of its own, ahead of its turn, and leaves
//! a hole at which reads stop too. Who has set SO_OOBINLINE reads it as any other byte. A stream
//! has one urgent byte at a time: the next one makes it an ordinary byte.

use alloc::collections::VecDeque;

use mach::mem::fallible::TryPush;
use sync::Result;

/// Where the marks of a stream lie.
#[derive(Default)]
pub(super) struct Urgent {
    /// The byte that is urgent, and was not received.
    byte: Option<u64>,
    /// Those that were, before it.
    holes: VecDeque<u64>,
}

impl Urgent {
    /// The byte at this position is urgent.
    pub(super) fn mark(&mut self, position: u64) {
        self.byte = Some(position);
    }

    /// Where the urgent byte lies.
    pub(super) fn byte(&self) -> Option<u64> {
        self.byte
    }

    /// It was received ahead of its turn. A hole right before it, at the `head`, says nothing any
    /// more: returns whether there was one.
    pub(super) fn received(&mut self, head: u64) -> Result<bool> {
        let Some(position) = self.byte else {
            return Ok(false);
        };
        self.holes.try_push(position)?;
        self.byte = None;
        let is_next = self.holes.front() == Some(&head) && position == head + 1;
        Ok(is_next)
    }

    /// Holes in the stream.
    pub(super) fn holes(&self) -> usize {
        self.holes.len()
    }

    /// Whether the next byte of the stream is the urgent one, or was (SIOCATMARK).
    pub(super) fn is_next(&self, head: u64) -> bool {
        let hole = self.holes.front() == Some(&head);
        match self.byte {
            Some(byte) => byte == head || hole && byte == head + 1,
            None => hole,
        }
    }

    /// Bytes from `position` on that a read leaves out.
    pub(super) fn left_out(&self, position: u64, is_inline: bool) -> usize {
        let mut next = position;
        for hole in self.holes.iter().skip_while(|hole| **hole < position) {
            if *hole != next {
                break;
            }
            next += 1;
        }
        if self.byte == Some(next) && !is_inline {
            next += 1;
        }
        (next - position) as usize
    }

    /// Bytes that a read takes from `position` on, the first of which is one to be read.
    pub(super) fn stretch(&self, position: u64) -> usize {
        let mut marks = self.holes.iter().chain(&self.byte);
        let next = marks.find(|mark| **mark > position);
        next.map_or(usize::MAX, |mark| (*mark - position) as usize)
    }

    /// What lies before `head` was read or thrown away.
    pub(super) fn pass(&mut self, head: u64) {
        while self.holes.pop_front_if(|hole| *hole < head).is_some() {}
        self.byte = self.byte.filter(|byte| *byte >= head);
    }
}
