//! Numbers of processes and threads: which are taken.
//!
//! A bit for each. It is set by an exchange of its word, so two that ask at the same time get
//! two numbers without a lock. Where to look first is a hint: the last one given.

use core::marker::PhantomData;

use base::lock::{Count, Family};

use crate::group::Group;
use crate::host::{CountOf, Host};

const WORD_BITS: u32 = usize::BITS;

/// The numbers below `WORDS` times the bits of a word, but for 0.
pub struct Numbers<F: Family, const WORDS: usize> {
    /// Bit `number % WORD_BITS` of word `number / WORD_BITS`.
    taken: [F::Count; WORDS],
    last: F::Count,
    /// How many were ever given.
    given: F::Count,
}

impl<F: Family, const WORDS: usize> Numbers<F, WORDS> {
    const END: u32 = WORDS as u32 * WORD_BITS;

    /// From zeros: all are free.
    pub const fn new(taken: [F::Count; WORDS], last: F::Count, given: F::Count) -> Self {
        Self { taken, last, given }
    }

    /// The next free number after the last one given, so that numbers are not reused soon;
    /// `None` when all are taken.
    pub fn allocate(&self) -> Option<u32> {
        let last = self.last.get() as u32;
        loop {
            let after = self.first_free(last + 1, Self::END);
            let number = after.or_else(|| self.first_free(1, last + 1))?;
            if self.take(number) {
                self.note_last(last, number);
                self.given.add(1);
                return Some(number);
            }
        }
    }

    /// Gives a number back.
    pub fn release(&self, number: u32) {
        let Some((word, bit)) = self.bit(number) else {
            return;
        };
        let mut old = word.get();
        while !word.exchange(old, old & !bit) {
            old = word.get();
        }
    }

    /// How many were ever given.
    pub fn given(&self) -> usize {
        self.given.get()
    }

    /// The first number from `from` on that is taken.
    pub fn next_taken(&self, from: u32) -> Option<u32> {
        self.find(from, Self::END, |word| word)
    }

    /// The highest number that is taken; 0 if none is.
    pub fn last_taken(&self) -> u32 {
        let words = self.taken.iter().enumerate().rev();
        let mut tops = words.filter_map(|(index, word)| {
            let top = word.get().checked_ilog2()?;
            Some(index as u32 * WORD_BITS + top)
        });
        tops.next().unwrap_or(0)
    }

    fn first_free(&self, from: u32, to: u32) -> Option<u32> {
        self.find(from, to, |word| !word)
    }

    /// The first number in `[from, to)` whose bit is set in what `select` makes of its word.
    fn find(&self, from: u32, to: u32, select: impl Fn(usize) -> usize) -> Option<u32> {
        let mut at = from;
        while at < to {
            let word = self.taken.get((at / WORD_BITS) as usize)?;
            let rest = select(word.get()) >> (at % WORD_BITS);
            if rest != 0 {
                return Some(at + rest.trailing_zeros()).filter(|&found| found < to);
            }
            at = (at / WORD_BITS + 1) * WORD_BITS;
        }
        None
    }

    /// Takes a number if it is free still.
    fn take(&self, number: u32) -> bool {
        let Some((word, bit)) = self.bit(number) else {
            return false;
        };
        loop {
            let old = word.get();
            if old & bit != 0 {
                return false;
            }
            if word.exchange(old, old | bit) {
                return true;
            }
        }
    }

    /// The next search begins behind `number`, unless others went further since `last` was read.
    fn note_last(&self, last: u32, number: u32) {
        loop {
            let now = self.last.get();
            let is_behind = now == last as usize || now < number as usize;
            if !is_behind || self.last.exchange(now, number as usize) {
                return;
            }
        }
    }

    fn bit(&self, number: u32) -> Option<(&F::Count, usize)> {
        let word = self.taken.get((number / WORD_BITS) as usize)?;
        Some((word, 1 << (number % WORD_BITS)))
    }
}

/// A number that processes bear, as their own, their group's or their session's.
pub struct Number<H: Host> {
    number: u32,
    pub(crate) group: Group<CountOf<H>>,
    host: PhantomData<fn() -> H>,
}

impl<H: Host> Number<H> {
    /// One that was given out.
    pub fn new(number: u32) -> Self {
        Self {
            number,
            group: Group::default(),
            host: PhantomData,
        }
    }

    /// The number.
    pub fn get(&self) -> u32 {
        self.number
    }
}

impl<H: Host> Drop for Number<H> {
    fn drop(&mut self) {
        H::release(self.number);
    }
}
