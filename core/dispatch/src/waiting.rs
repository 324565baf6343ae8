//! How many threads wait for a CPU, in a word that others read without a lock.

use core::ops::Add;

const HALF_BITS: u32 = usize::BITS / 2;

/// Two numbers, each far below half of a word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Waiting {
    /// All of them.
    pub ready: usize,
    /// Those that may run on other CPUs too.
    pub movable: usize,
}

impl Waiting {
    pub(crate) const NOBODY: Self = Self {
        ready: 0,
        movable: 0,
    };

    #[inline]
    pub(crate) fn from_word(word: usize) -> Self {
        Self {
            ready: word & ((1 << HALF_BITS) - 1),
            movable: word >> HALF_BITS,
        }
    }

    #[inline]
    pub(crate) fn word(self) -> usize {
        self.movable << HALF_BITS | self.ready
    }
}

impl Add for Waiting {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            ready: self.ready + other.ready,
            movable: self.movable + other.movable,
        }
    }
}
