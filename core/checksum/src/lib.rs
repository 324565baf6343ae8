//! CRC-32C (Castagnoli), as iSCSI, ext4 and NVMe have it.
//!
//! Sixteen bytes a step with sixteen tables (the method of Kounavis and Berry), which the
//! compiler makes: 16 KiB that stay in the first cache while a log is written. The processor's own
//! instruction is several times as fast and can be had only by `unsafe`: who has it hands it in
//! ([`Crc32c::by`]), and sums that go on from that one are made so, too.
#![no_std]
#![forbid(unsafe_code)]

const POLYNOMIAL: u32 = 0x82f6_3b78;
const STEP: usize = 16;

const fn tables() -> [[u32; 256]; STEP] {
    let mut tables = [[0; 256]; STEP];
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
    while table < STEP {
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
static TABLES: [[u32; 256]; STEP] = tables();

/// Goes on with the register's value by these bytes. Whoever computes it, the result is the same.
pub type Fold = fn(u32, &[u8]) -> u32;

/// A sum that bytes are still added to.
///
/// ```
/// use checksum::Crc32c;
/// let sum = Crc32c::new().with(b"1234").with(b"56789").sum();
/// assert_eq!(sum, 0xe306_9283);
/// ```
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct Crc32c {
    register: u32,
    fold: Fold,
}

impl Crc32c {
    /// The sum of nothing.
    pub const fn new() -> Self {
        Self::by(fold)
    }

    /// The same, with bytes added by `fold`.
    pub const fn by(fold: Fold) -> Self {
        Self { register: !0, fold }
    }

    /// Continued by `bytes`.
    pub fn with(self, bytes: &[u8]) -> Self {
        self.resumed((self.fold)(self.register, bytes))
    }

    /// A sum, made as this one is, that goes on from the register's value.
    pub const fn resumed(self, register: u32) -> Self {
        Self { register, ..self }
    }

    /// The register: the sum before it is inverted. ext4 stores this.
    pub const fn register(self) -> u32 {
        self.register
    }

    /// What it comes to.
    pub const fn sum(self) -> u32 {
        !self.register
    }
}

/// By which means a sum was made is no part of it.
impl PartialEq for Crc32c {
    fn eq(&self, other: &Self) -> bool {
        self.register == other.register
    }
}

impl Eq for Crc32c {}

impl Default for Crc32c {
    fn default() -> Self {
        Self::new()
    }
}

/// The sum of `bytes`.
pub fn crc32c(bytes: &[u8]) -> u32 {
    Crc32c::new().with(bytes).sum()
}

fn entry(table: usize, byte: u8) -> u32 {
    // tidy: sixteen tables of 256, and a byte.
    TABLES[table % STEP][usize::from(byte)]
}

fn fold(register: u32, bytes: &[u8]) -> u32 {
    let (steps, rest) = bytes.as_chunks::<STEP>();
    let crc = steps.iter().fold(register, folded);
    let one = |crc: u32, byte: &u8| (crc >> 8) ^ entry(0, crc as u8 ^ byte);
    rest.iter().fold(crc, one)
}

fn folded(crc: u32, step: &[u8; STEP]) -> u32 {
    let [a, b, c, d] = crc.to_le_bytes();
    let [s0, s1, s2, s3, rest @ ..] = step;
    let first = entry(15, s0 ^ a) ^ entry(14, s1 ^ b) ^ entry(13, s2 ^ c) ^ entry(12, s3 ^ d);
    let others = rest.iter().enumerate();
    others.fold(first, |crc, (at, byte)| crc ^ entry(11 - at, *byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_check_values_of_rfc_3720_come_out() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(crc32c(&[0xff; 32]), 0x62a8_ab43);
    }

    #[test]
    fn a_sum_goes_on_by_the_means_that_were_handed_in() {
        let sum = Crc32c::by(|register, bytes| fold(register, bytes) ^ 1);
        assert_eq!(sum.with(b"123456789").sum(), 0xe306_9283 ^ 1);
        assert_eq!(sum.resumed(5).with(&[]).register(), 4);
    }

    #[test]
    fn pieces_of_any_length_make_the_same_sum() {
        let bytes: [u8; 100] = core::array::from_fn(|at| at as u8);
        for cut in 0..bytes.len() {
            let (front, back) = bytes.split_at(cut);
            assert_eq!(Crc32c::new().with(front).with(back).sum(), crc32c(&bytes));
        }
    }
}
