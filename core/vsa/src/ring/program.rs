//! The program's end of its ring.
//!
//! No more than a ring's size are submitted without their completion taken, so the submission ring never has to be asked
//! for room.

use core::sync::atomic::{Ordering, fence};

use base::SharedMemory;

use super::{COMPLETION_BYTES, Outcome, RingSize, Submission, WORDS};

/// See the module.
#[derive(Debug)]
pub struct Program<M> {
    memory: M,
    size: RingSize,
    tail: u32,
    shown: u32,
    head: u32,
}

impl<M: SharedMemory> Program<M> {
    /// Of a ring that is all zeroes.
    pub fn new(memory: M, size: RingSize) -> Self {
        Self {
            memory,
            size,
            tail: 0,
            shown: 0,
            head: 0,
        }
    }

    /// Submissions whose completions were not taken.
    #[inline]
    pub fn under_way(&self) -> u32 {
        self.tail.wrapping_sub(self.head)
    }

    /// Whether one more may be submitted.
    #[inline]
    pub fn has_room(&self) -> bool {
        self.under_way() < self.size.entries()
    }

    /// Puts a submission, for which there is room; the driver sees it when it is shown.
    #[inline]
    pub fn push(&mut self, submission: &Submission) {
        self.memory
            .write(self.size.submission_at(self.tail), &submission.encode());
        self.tail = self.tail.wrapping_add(1);
    }

    /// Shows the driver what was put; true if it is to be woken by its bell.
    #[inline]
    pub fn show(&mut self) -> bool {
        if self.shown == self.tail {
            return false;
        }
        self.shown = self.tail;
        self.memory.store(WORDS.submission_tail, self.tail);
        fence(Ordering::SeqCst);
        self.memory.load(WORDS.driver_sleeps) != 0
    }

    /// Takes a completion: cookie and outcome.
    #[inline]
    pub fn pop(&mut self) -> Option<(u64, Outcome)> {
        if !self.has_completion() {
            return None;
        }
        let mut bytes = [0; COMPLETION_BYTES];
        self.memory
            .read(self.size.completion_at(self.head), &mut bytes);
        self.head = self.head.wrapping_add(1);
        self.memory.store(WORDS.completion_head, self.head);
        let [cookie, outcome] = [0, 8].map(|at| {
            let field = bytes.get(at..).and_then(|rest| rest.first_chunk());
            field.map_or(0, |field: &[u8; 8]| u64::from_le_bytes(*field))
        });
        Some((cookie, Outcome::of(outcome as u32)))
    }

    /// Whether a completion is there.
    #[inline]
    pub fn has_completion(&self) -> bool {
        self.memory.load(WORDS.completion_tail) != self.head
    }

    /// Asks for the bell with the next completion; false if one is there already.
    #[inline]
    pub fn arm(&self) -> bool {
        self.memory.store(WORDS.program_sleeps, 1);
        fence(Ordering::SeqCst);
        !self.has_completion()
    }

    /// No bell is needed.
    #[inline]
    pub fn disarm(&self) {
        self.memory.store(WORDS.program_sleeps, 0);
    }
}
