//! Sums of blocks of which little is new: zeroes, and what has not changed since the last commit.
//!
//! # Problem
//! A commit of a few changed bytes made sums of 28 KiB: of each copied block as a whole, of a bitmap once more, and of descriptors and
//! commit blocks that are zeroes but for their beginning. QEMU emulates the processor's instruction by a loop over bits.
//!
//! # Idea
//! A sum from register 0 is linear: that of `a ^ b` is the sum of `a` ^ the sum of `b`, where both are as long. So what a *part* of a
//! block, with zeroes elsewhere, is to the sum can be taken out of it and put in again. `n` zeroes behind a register multiply it by a
//! constant matrix ([`after_zeroes`]), and there is one for each power of two: by nibbles, 512 bytes each.
//!
//! A sum from any register `r` is that from 0 ^ `r` followed by as many zeroes as the block has bytes ([`BlockSum::begun_with`]).
//!
//! # Invariants
//! - **Open parts**: [`BlockSum`] counts parts that are open as zeroes, and only these differ from what was summed. Who changes bytes opens
//!   their parts before ([`crate::store::Store::modify_part`] hands out no others).

use core::ops::Range;

use checksum::Crc32c;

/// Parts of a block, each open or not.
const PARTS: usize = u64::BITS as usize;
/// The longest run of zeroes that has a matrix is 2 to this power.
const POWER_MAX: usize = 12;
const NIBBLES: usize = 8;
const POLYNOMIAL: u32 = 0x82f6_3b78;

/// What each value of each nibble of a register becomes.
type Matrix = [[u32; 16]; NIBBLES];

/// A constant.
static ZEROES: [Matrix; POWER_MAX + 1] = matrices();

const fn matrices() -> [Matrix; POWER_MAX + 1] {
    let mut all = [[[0; 16]; NIBBLES]; POWER_MAX + 1];
    let mut power = 0;
    while power <= POWER_MAX {
        let mut at = 0;
        while at < 16 * NIBBLES {
            let value = ((at % 16) as u32) << (4 * (at / 16));
            all[power][at / 16][at % 16] = match power {
                0 => after_byte(value),
                _ => times(&all[power - 1], times(&all[power - 1], value)),
            };
            at += 1;
        }
        power += 1;
    }
    all
}

const fn after_byte(mut register: u32) -> u32 {
    let mut bit = 0;
    while bit < 8 {
        register = (register >> 1) ^ (POLYNOMIAL * (register & 1));
        bit += 1;
    }
    register
}

const fn times(matrix: &Matrix, register: u32) -> u32 {
    let mut product = 0;
    let mut nibble = 0;
    while nibble < NIBBLES {
        // tidy: eight nibbles, of sixteen values each.
        product ^= matrix[nibble][(register >> (4 * nibble)) as usize & 15];
        nibble += 1;
    }
    product
}

/// A sum's register behind so many zeroes more.
pub(crate) fn after_zeroes(mut register: u32, mut count: usize) -> u32 {
    while count != 0 {
        let power = (count.trailing_zeros() as usize).min(POWER_MAX);
        // tidy: not above the highest power.
        register = times(&ZEROES[power], register);
        count -= 1 << power;
    }
    register
}

/// The sum of a block's bytes from register 0; see the module.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct BlockSum {
    register: u32,
    open: u64,
}

impl BlockSum {
    /// Of all bytes, by the means of `sums`.
    pub(crate) fn of(sums: Crc32c, bytes: &[u8]) -> Self {
        Self {
            register: sums.resumed(0).with(bytes).register(),
            open: 0,
        }
    }

    /// These bytes of the block are going to be changed.
    pub(crate) fn open(&mut self, sums: Crc32c, bytes: &[u8], range: &Range<usize>) {
        let each = bytes.len().div_ceil(PARTS).max(1);
        let first = range.start / each;
        let count = range.end.div_ceil(each).min(PARTS).saturating_sub(first);
        let mask = (u64::MAX.checked_shl(count as u32)).map_or(u64::MAX, |behind| !behind);
        let parts = mask.checked_shl(first as u32).unwrap_or(0) & !self.open;
        self.flip(sums, bytes, parts);
        self.open |= parts;
    }

    /// All changes have been made.
    pub(crate) fn close(&mut self, sums: Crc32c, bytes: &[u8]) {
        let open = core::mem::take(&mut self.open);
        self.flip(sums, bytes, open);
    }

    /// Takes parts out, or puts them in; such as lie together at once.
    fn flip(&mut self, sums: Crc32c, bytes: &[u8], mut parts: u64) {
        let each = bytes.len().div_ceil(PARTS).max(1);
        while parts != 0 {
            let first = parts.trailing_zeros();
            let count = (parts >> first).trailing_ones();
            let end = ((first + count) as usize * each).min(bytes.len());
            let part = bytes.get(first as usize * each..end).unwrap_or(&[]);
            let register = sums.resumed(0).with(part).register();
            self.register ^= after_zeroes(register, bytes.len() - end);
            // All bits up to there are behind us.
            parts &= u64::MAX.checked_shl(first + count).unwrap_or(0);
        }
    }

    /// The register of a sum that goes on from `begin` with the block's `len` bytes. No part is open.
    pub(crate) fn begun_with(self, begin: Crc32c, len: usize) -> u32 {
        debug_assert_eq!(self.open, 0, "all changes have been made");
        after_zeroes(begin.register(), len) ^ self.register
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec;
    use std::vec::Vec;

    fn whole(begin: Crc32c, bytes: &[u8]) -> u32 {
        begin.with(bytes).register()
    }

    #[test]
    fn zeroes_that_are_not_read_make_the_same_sum() {
        let begin = Crc32c::new().with(b"something");
        for count in (0..300).chain([1000, 4032, 4096, 5000, 12_289]) {
            let read = whole(begin, &vec![0; count]);
            assert_eq!(after_zeroes(begin.register(), count), read, "{count}");
        }
    }

    #[test]
    fn a_sum_of_which_parts_have_changed_is_that_of_the_whole() {
        models::for_each_seed(50, |_, mut random| {
            for len in [1024, 2048, 4096] {
                let mut bytes: Vec<u8> = (0..len).map(|_| random.below(256u32) as u8).collect();
                let (sums, begin) = (Crc32c::new(), Crc32c::new().with(b"seed"));
                let mut sum = BlockSum::of(sums, &bytes);
                for _ in 0..random.below(12u32) {
                    let start = random.below(len as u32) as usize;
                    let most = (len - start).min(if random.once_in(4) { 4096 } else { 100 });
                    let range = start..start + random.below(most as u32 + 1) as usize;
                    sum.open(sums, &bytes, &range);
                    let flip = random.below(256u32) as u8;
                    bytes[range].iter_mut().for_each(|byte| *byte ^= flip);
                    if random.once_in(3) {
                        sum.close(sums, &bytes);
                        assert_eq!(sum.begun_with(begin, len), whole(begin, &bytes));
                    }
                }
                sum.close(sums, &bytes);
                assert_eq!(sum.begun_with(begin, len), whole(begin, &bytes));
            }
        });
    }
}
