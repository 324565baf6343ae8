//! The root pointer (ACPI 6.5, 5.2.5): where the table of tables is.

use crate::{address, sums_to_zero, word};

/// Bytes of the pointer since version 2; version 1 has 20.
pub const RSDP_BYTES_MAX: usize = 36;
const RSDP_BYTES: usize = 20;
const REVISION: usize = 15;
const RSDT: usize = 16;
const XSDT: usize = 24;

/// The table that lists all others. Of two, the greater has the longer addresses.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Root {
    /// Bytes of each of its entries, 4 or 8.
    pub entry_bytes: usize,
    /// Its physical address.
    pub at: u64,
}

impl Root {
    /// What the pointer that begins these bytes says; `None` if it is none.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let short = bytes.get(..RSDP_BYTES)?;
        if !short.starts_with(b"RSD PTR ") || !sums_to_zero(short) {
            return None;
        }
        Self::long(bytes).or_else(|| {
            Some(Self {
                entry_bytes: 4,
                at: u64::from(word(short, RSDT)?),
            })
        })
    }

    fn long(bytes: &[u8]) -> Option<Self> {
        let whole = bytes.get(..RSDP_BYTES_MAX)?;
        if whole[REVISION] < 2 || !sums_to_zero(whole) {
            return None;
        }
        let at = address(whole, XSDT).filter(|&at| at != 0)?;
        Some(Self { entry_bytes: 8, at })
    }
}
