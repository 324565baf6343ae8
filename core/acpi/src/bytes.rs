//! Numbers in tables: little-endian, not aligned.

/// Whether the bytes of a table or pointer add up to zero, as ACPI's checksums want it.
pub fn sums_to_zero(bytes: &[u8]) -> bool {
    bytes.iter().fold(0u8, |sum, &byte| sum.wrapping_add(byte)) == 0
}

/// Two bytes.
pub(crate) fn half(bytes: &[u8], at: usize) -> Option<u16> {
    let half = bytes.get(at..)?.first_chunk()?;
    Some(u16::from_le_bytes(*half))
}

/// Four bytes.
pub fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let word = bytes.get(at..)?.first_chunk()?;
    Some(u32::from_le_bytes(*word))
}

/// Eight bytes.
pub(crate) fn long(bytes: &[u8], at: usize) -> Option<u64> {
    let long = bytes.get(at..)?.first_chunk()?;
    Some(u64::from_le_bytes(*long))
}

/// An address of eight bytes, or of four if there are no more.
pub fn address(bytes: &[u8], at: usize) -> Option<u64> {
    let high = word(bytes, at + 4).unwrap_or(0);
    Some(u64::from(word(bytes, at)?) | u64::from(high) << 32)
}
