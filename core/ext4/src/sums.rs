//! Sums of zeroes, without reading them.
//!
//! # Problem
//! Blocks of the log are zeroes but for their beginning, and their sums were made of all 4096 bytes. In an emulated machine, where the
//! processor's instruction is a loop over bits, that is the most expensive thing of a small fsync(2).
//!
//! # Idea
//! `n` zeroes behind a register multiply it by a constant matrix ([`after_zeroes`]), and there is one for each power of two: by
//! nibbles, 512 bytes each.

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

#[cfg(test)]
mod tests {
    use super::*;
    use checksum::Crc32c;
    use std::vec;

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
}
