//! The two checksums of ext4: CRC-32C everywhere, CRC-16 for group descriptors of old images.
//!
//! Both are continued from a seed and never inverted at the end, as the disk format has it.
//! CRC-32C takes eight bytes a step with eight tables (the method of Kounavis and Berry); the
//! tables are made by the compiler.

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

/// The entry of `table` for the lowest byte of `word`.
fn entry(table: usize, word: u32) -> u32 {
    // tidy: eight tables of 256, and a byte.
    TABLES[table & 7][(word & 0xff) as usize]
}

/// CRC-32C of `bytes`, continued from `seed`.
pub(crate) fn crc32c(seed: u32, bytes: &[u8]) -> u32 {
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
    fn pieces_of_any_length_make_the_same_sum() {
        let bytes: Vec<u8> = (0..100).collect();
        for cut in 0..bytes.len() {
            let (front, back) = bytes.split_at(cut);
            assert_eq!(crc32c(crc32c(!0, front), back), crc32c(!0, &bytes));
        }
    }
}
