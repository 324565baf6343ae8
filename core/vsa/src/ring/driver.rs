//! The driver's two ends of a program's ring. Each belongs to one holder at a time; they share no state but `Completer`'s
//! reservations, so submissions are taken while completions are put.
//!
//! A submission is taken only when its completion has a place: the program cannot make the driver drop one, or wait.

use core::sync::atomic::{Ordering, fence};

use base::SharedMemory;

use super::{Nonsense, Outcome, RingSize, SUBMISSION_BYTES, WORDS, completion};

/// Takes submissions.
#[derive(Debug)]
pub struct Taker {
    size: RingSize,
    head: u32,
}

impl Taker {
    /// Of a ring that is all zeroes.
    pub fn new(size: RingSize) -> Self {
        Self { size, head: 0 }
    }

    /// How many submissions there are now.
    #[inline]
    pub fn filled(&self, memory: &impl SharedMemory) -> Result<u32, Nonsense> {
        self.size
            .filled(self.head, memory.load(WORDS.submission_tail))
    }

    /// A copy of the next submission, which the program may change meanwhile: who does not take it looks at another copy later.
    #[inline]
    pub fn peek(&self, memory: &impl SharedMemory) -> [u8; SUBMISSION_BYTES] {
        let mut bytes = [0; SUBMISSION_BYTES];
        memory.read(self.size.submission_at(self.head), &mut bytes);
        bytes
    }

    /// The next one is taken.
    #[inline]
    pub fn take(&mut self) {
        self.head = self.head.wrapping_add(1);
    }

    /// Shows the program what was taken.
    #[inline]
    pub fn show(&self, memory: &impl SharedMemory) {
        memory.store(WORDS.submission_head, self.head);
    }

    /// From now on the program rings the bell for what it submits. True if something came before it could know.
    pub fn sleep(&self, memory: &impl SharedMemory) -> bool {
        memory.store(WORDS.driver_sleeps, 1);
        fence(Ordering::SeqCst);
        memory.load(WORDS.submission_tail) != self.head
    }

    /// The program need not ring it.
    #[inline]
    pub fn wake(&self, memory: &impl SharedMemory) {
        memory.store(WORDS.driver_sleeps, 0);
    }
}

/// Puts completions.
#[derive(Debug)]
pub struct Completer {
    size: RingSize,
    tail: u32,
    /// The tail that the program was shown.
    shown: u32,
    reserved: u32,
}

impl Completer {
    /// Of a ring that is all zeroes.
    pub fn new(size: RingSize) -> Self {
        Self {
            size,
            tail: 0,
            shown: 0,
            reserved: 0,
        }
    }

    /// Keeps places for at most so many completions; how many.
    #[inline]
    pub fn reserve(&mut self, memory: &impl SharedMemory, most: u32) -> Result<u32, Nonsense> {
        let room = self
            .size
            .room(self.tail, memory.load(WORDS.completion_head))?;
        let count = room.saturating_sub(self.reserved).min(most);
        self.reserved += count;
        Ok(count)
    }

    /// Gives places back.
    #[inline]
    pub fn release(&mut self, count: u32) {
        self.reserved = self.reserved.saturating_sub(count);
    }

    /// Requests without their completion.
    #[inline]
    pub fn reserved(&self) -> u32 {
        self.reserved
    }

    /// Puts a completion, whose place was reserved; the program sees it when it is shown.
    #[inline]
    pub fn put(&mut self, memory: &impl SharedMemory, cookie: u64, outcome: Outcome) {
        memory.write(
            self.size.completion_at(self.tail),
            &completion(cookie, outcome),
        );
        self.tail = self.tail.wrapping_add(1);
        self.release(1);
    }

    /// Shows the program what was put; how many completions.
    #[inline]
    pub fn show(&mut self, memory: &impl SharedMemory) -> u32 {
        let count = self.tail.wrapping_sub(self.shown);
        if count != 0 {
            self.shown = self.tail;
            memory.store(WORDS.completion_tail, self.tail);
        }
        count
    }

    /// How many completions the program was shown and has not taken.
    pub fn filled(&self, memory: &impl SharedMemory) -> Result<u32, Nonsense> {
        self.size
            .filled(memory.load(WORDS.completion_head), self.shown)
    }

    /// Whether the program wants its bell for what was put.
    #[inline]
    pub fn program_sleeps(&self, memory: &impl SharedMemory) -> bool {
        fence(Ordering::SeqCst);
        memory.load(WORDS.program_sleeps) != 0
    }
}
