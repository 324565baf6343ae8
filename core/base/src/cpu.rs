//! CPUs and sets of them.
//!
//! Whoever speaks of several CPUs has a [`CpuSet`], a value, or a [`SharedCpuSet`], which all
//! CPUs read and write. Neither shows how many words it has: that follows from [`CPUS_MAX`] and
//! from nothing else. With one word they cost what a `u64` does.
//!
//! A shared set is read word by word. What one CPU adds or removes is seen by the order that the
//! caller names, but the whole is no snapshot: while another one replaces it, a reader may find
//! members of both, or of neither.

use core::fmt;
use core::ops::{BitAnd, BitOr, Sub};
use core::sync::atomic::{AtomicU64, Ordering};

use crate::{Atomics, Native, Word};

/// CPUs of a machine at most. Nothing else need be changed with it.
pub const CPUS_MAX: usize = 64;

const WORD_BITS: usize = u64::BITS as usize;
const WORDS: usize = CPUS_MAX.div_ceil(WORD_BITS);

/// The kernel's number of a CPU: dense, from 0, in the order in which they started.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct CpuId(pub u32);

impl CpuId {
    /// The number as an array index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    const fn word(self) -> usize {
        self.index() / WORD_BITS
    }

    const fn bit(self) -> u64 {
        1 << (self.index() % WORD_BITS)
    }
}

/// Some of the CPUs below [`CPUS_MAX`].
pub type CpuSet = CpuBits<WORDS>;

/// The same, shared by all CPUs.
pub type SharedCpuSet<A = Native> = SharedCpuBits<A, WORDS>;

/// A set of CPUs in so many words. Only tests name a number other than that of [`CpuSet`].
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct CpuBits<const N: usize> {
    words: [u64; N],
}

impl<const N: usize> CpuBits<N> {
    /// No CPU.
    pub const EMPTY: Self = Self { words: [0; N] };
    /// Every CPU that a machine may have.
    pub const ALL: Self = Self {
        words: [u64::MAX; N],
    };

    /// `cpu` alone.
    ///
    /// # Panics
    /// If there can be no such CPU.
    #[inline(always)]
    pub const fn one(cpu: CpuId) -> Self {
        let mut words = [0; N];
        words[cpu.word()] = cpu.bit();
        Self { words }
    }

    /// The CPUs `0..count`, as far as a set can hold them.
    pub fn first_of(count: usize) -> Self {
        let word = |index: usize| match count.saturating_sub(index * WORD_BITS) {
            0 => 0,
            bits => u64::MAX >> (WORD_BITS - bits.min(WORD_BITS)),
        };
        Self {
            words: core::array::from_fn(word),
        }
    }

    /// From bits in bytes, the lowest first; those of CPUs that can not be are left out.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let mut words = [0; N];
        for (word, bytes) in words.iter_mut().zip(bytes.chunks(size_of::<u64>())) {
            let mut whole = [0; size_of::<u64>()];
            whole[..bytes.len()].copy_from_slice(bytes);
            *word = u64::from_le_bytes(whole);
        }
        Self { words }
    }

    /// The bits in words, the lowest first.
    pub const fn words(&self) -> &[u64; N] {
        &self.words
    }

    /// Whether `cpu` is a member.
    #[inline(always)]
    pub fn contains(&self, cpu: CpuId) -> bool {
        let word = self.words.get(cpu.word());
        word.is_some_and(|word| word & cpu.bit() != 0)
    }

    /// Whether there is no member.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    /// How many members there are.
    pub fn len(&self) -> usize {
        self.words
            .iter()
            .map(|word| word.count_ones() as usize)
            .sum()
    }

    /// The member with the lowest number.
    #[inline]
    pub fn first(&self) -> Option<CpuId> {
        self.iter().next()
    }

    /// The members, ascending.
    #[inline]
    pub fn iter(self) -> impl Iterator<Item = CpuId> + Clone {
        let words = self.words.into_iter().enumerate();
        words.flat_map(|(index, word)| bits_of(word).map(move |bit| id(index, bit)))
    }

    /// The members, ascending from the first behind `cpu`, and `cpu` last if it is one.
    pub fn iter_after(self, cpu: CpuId) -> impl Iterator<Item = CpuId> {
        let behind = self.iter().filter(move |member| *member > cpu);
        behind.chain(self.iter().take_while(move |member| *member <= cpu))
    }
}

fn id(word: usize, bit: u32) -> CpuId {
    CpuId((word * WORD_BITS) as u32 + bit)
}

/// The numbers of the bits that are set, ascending.
#[inline(always)]
fn bits_of(mut word: u64) -> impl Iterator<Item = u32> + Clone {
    core::iter::from_fn(move || {
        let first = (word != 0).then(|| word.trailing_zeros());
        word &= word.wrapping_sub(1);
        first
    })
}

impl<const N: usize> Default for CpuBits<N> {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl<const N: usize> BitAnd for CpuBits<N> {
    type Output = Self;
    #[inline(always)]
    fn bitand(self, other: Self) -> Self {
        Self {
            words: core::array::from_fn(|at| self.words[at] & other.words[at]),
        }
    }
}

impl<const N: usize> BitOr for CpuBits<N> {
    type Output = Self;
    #[inline(always)]
    fn bitor(self, other: Self) -> Self {
        Self {
            words: core::array::from_fn(|at| self.words[at] | other.words[at]),
        }
    }
}

impl<const N: usize> Sub for CpuBits<N> {
    type Output = Self;
    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        Self {
            words: core::array::from_fn(|at| self.words[at] & !other.words[at]),
        }
    }
}

impl<const N: usize> FromIterator<CpuId> for CpuBits<N> {
    #[inline]
    fn from_iter<I: IntoIterator<Item = CpuId>>(cpus: I) -> Self {
        cpus.into_iter()
            .fold(Self::EMPTY, |set, cpu| set | Self::one(cpu))
    }
}

impl<const N: usize> fmt::Debug for CpuBits<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers = self.iter().map(|cpu| cpu.0);
        f.debug_set().entries(numbers).finish()
    }
}

/// A set of CPUs in so many words that all CPUs read and write.
#[derive(Debug)]
pub struct SharedCpuBits<A: Atomics, const N: usize> {
    words: [A::Word; N],
}

impl<A: Atomics, const N: usize> Default for SharedCpuBits<A, N> {
    fn default() -> Self {
        Self {
            words: core::array::from_fn(|_| A::Word::default()),
        }
    }
}

impl<const N: usize> SharedCpuBits<Native, N> {
    /// A set with these members.
    pub const fn new(members: CpuBits<N>) -> Self {
        let mut words = [const { AtomicU64::new(0) }; N];
        let mut index = 0;
        while index < N {
            words[index] = AtomicU64::new(members.words[index]);
            index += 1;
        }
        Self { words }
    }
}

impl<A: Atomics, const N: usize> SharedCpuBits<A, N> {
    #[inline(always)]
    fn word(&self, cpu: CpuId) -> &A::Word {
        &self.words[cpu.word()]
    }

    /// The members.
    #[inline(always)]
    pub fn load(&self, order: Ordering) -> CpuBits<N> {
        CpuBits {
            words: core::array::from_fn(|at| self.words[at].load(order)),
        }
    }

    /// Replaces the members.
    #[inline(always)]
    pub fn store(&self, members: CpuBits<N>, order: Ordering) {
        for (word, value) in self.words.iter().zip(members.words) {
            word.store(value, order);
        }
    }

    /// Takes all members out, and returns them.
    #[inline(always)]
    pub fn take(&self, order: Ordering) -> CpuBits<N> {
        CpuBits {
            words: core::array::from_fn(|at| self.words[at].swap(0, order)),
        }
    }

    /// Whether `cpu` is a member.
    ///
    /// # Panics
    /// If there can be no such CPU.
    #[inline(always)]
    pub fn contains(&self, cpu: CpuId, order: Ordering) -> bool {
        self.word(cpu).load(order) & cpu.bit() != 0
    }

    /// Adds `cpu`; false if there may have been members already, as those in its word are what is
    /// looked at.
    ///
    /// # Panics
    /// If there can be no such CPU.
    #[inline(always)]
    pub fn insert(&self, cpu: CpuId, order: Ordering) -> bool {
        self.word(cpu).fetch_or(cpu.bit(), order) == 0
    }

    /// Takes `cpu` out.
    ///
    /// # Panics
    /// If there can be no such CPU.
    #[inline(always)]
    pub fn remove(&self, cpu: CpuId, order: Ordering) {
        self.word(cpu).fetch_and(!cpu.bit(), order);
    }

    /// Whether there is no member.
    #[inline(always)]
    pub fn is_empty(&self, order: Ordering) -> bool {
        self.words.iter().all(|word| word.load(order) == 0)
    }
}

#[cfg(test)]
mod tests;
