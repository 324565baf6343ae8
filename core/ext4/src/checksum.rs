//! The two checksums of ext4: CRC-32C everywhere, CRC-16 for group descriptors of old images.
//!
//! Both are continued from a seed and never inverted at the end, as the disk format has it.
//! CRC-32C takes eight bytes a step with eight tables (the method of Kounavis and Berry); the
//! tables are made by the compiler. Most of what is in blocks of metadata and of the log is zero: what
//! 64 zeroes make of a sum depends on nothing but the sum, and four more tables have it.

const POLYNOMIAL: u32 = 0x82f6_3b78;

const fn tables() -> [[u32; 256]; 8] {
    let mut tables = [[0; 256]; 8];
    let mut index = 0;
    while index < 256 {
        let mut crc = index as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = (crc >> 1) ^ (POLYNOMIAL * (crc & 1));
            bit += 1;
        }
        tables[0][index] = crc;
        index += 1;
    }
    let mut table = 1;
    while table < 8 {
        let mut index = 0;
        while index < 256 {
            let before = tables[table - 1][index];
            tables[table][index] = (before >> 8) ^ tables[0][(before & 0xff) as usize];
            index += 1;
        }
        table += 1;
    }
    tables
}

/// A constant.
static TABLES: [[u32; 256]; 8] = tables();

/// Zeroes that are taken in one step.
const ZEROES: usize = 64;

/// For each byte of a sum and each of its values: what is left of it after the zeroes. The sum's bytes
/// are independent of each other, as everything here is linear.
const fn after_zeroes() -> [[u32; 256]; 4] {
    let of_byte = tables();
    let mut tables = [[0; 256]; 4];
    let mut place = 0;
    while place < 4 {
        let mut value = 0;
        while value < 256 {
            let mut crc = (value as u32) << (8 * place);
            let mut done = 0;
            while done < ZEROES {
                crc = (crc >> 8) ^ of_byte[0][(crc & 0xff) as usize];
                done += 1;
            }
            tables[place][value] = crc;
            value += 1;
        }
        place += 1;
    }
    tables
}

/// A constant.
static AFTER_ZEROES: [[u32; 256]; 4] = after_zeroes();

fn over_zeroes(crc: u32) -> u32 {
    let bytes = crc.to_le_bytes();
    let each = AFTER_ZEROES.iter().zip(bytes);
    // tidy: a table of 256, and a byte.
    each.fold(0, |sum, (table, byte)| sum ^ table[usize::from(byte)])
}

fn is_zero(chunk: &[u8; ZEROES]) -> bool {
    let (words, _) = chunk.as_chunks::<8>();
    let all = words
        .iter()
        .fold(0, |all, word| all | u64::from_le_bytes(*word));
    all == 0
}

/// The entry of `table` for the lowest byte of `word`.
fn entry(table: usize, word: u32) -> u32 {
    // tidy: eight tables of 256, and a byte.
    TABLES[table & 7][(word & 0xff) as usize]
}

/// CRC-32C of `bytes`, continued from `seed`.
pub(crate) fn crc32c(seed: u32, bytes: &[u8]) -> u32 {
    let (chunks, rest) = bytes.as_chunks::<ZEROES>();
    let crc = chunks.iter().fold(seed, |crc, chunk| match is_zero(chunk) {
        true => over_zeroes(crc),
        false => over_bytes(crc, chunk),
    });
    over_bytes(crc, rest)
}

fn over_bytes(seed: u32, bytes: &[u8]) -> u32 {
    let (words, rest) = bytes.as_chunks::<8>();
    let crc = words.iter().fold(seed, |crc, word| {
        let word = u64::from_le_bytes(*word) ^ u64::from(crc);
        let (low, high) = (word as u32, (word >> 32) as u32);
        let of = |word: u32, first: usize| {
            let shifted = |step: usize| entry(first - step, word >> (8 * step));
            shifted(0) ^ shifted(1) ^ shifted(2) ^ shifted(3)
        };
        of(low, 7) ^ of(high, 3)
    });
    rest.iter().fold(crc, |crc, byte| {
        (crc >> 8) ^ entry(0, crc ^ u32::from(*byte))
    })
}

/// CRC-16 (of ANSI) of `bytes`, continued from `seed`.
pub(crate) fn crc16(seed: u16, bytes: &[u8]) -> u16 {
    bytes.iter().fold(seed, |crc, byte| {
        (0..8).fold(crc ^ u16::from(*byte), |crc, _| {
            (crc >> 1) ^ (0xa001 * (crc & 1))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[test]
    fn the_check_values_of_the_catalogues_come_out() {
        assert_eq!(!crc32c(!0, b"123456789"), 0xe306_9283);
        assert_eq!(crc16(0, b"123456789"), 0xbb3d);
    }

    #[test]
    fn zeroes_that_are_passed_over_count_as_others_do() {
        let one_by_one = |seed: u32, bytes: &[u8]| {
            let step = |crc: u32, byte: &u8| (crc >> 8) ^ entry(0, crc ^ u32::from(*byte));
            bytes.iter().fold(seed, step)
        };
        for other in [0, 1, 63, 64, 130, 700, 4095] {
            let mut bytes = [0u8; 4096];
            bytes[other] = 0x5a;
            for len in [0, 7, 64, 65, 128, 1000, 4096] {
                for seed in [0, 1, !0, 0x1234_5678] {
                    let part = &bytes[..len];
                    assert_eq!(crc32c(seed, part), one_by_one(seed, part), "{other} {len}");
                }
            }
        }
    }

    #[test]
    fn pieces_of_any_length_make_the_same_sum() {
        let bytes: Vec<u8> = (0..100).collect();
        for cut in 0..bytes.len() {
            let (front, back) = bytes.split_at(cut);
            assert_eq!(crc32c(crc32c(!0, front), back), crc32c(!0, &bytes));
        }
    }
}
