//! CRC-32 as UEFI has it (reflected, polynomial 0xEDB88320).

/// The checksum of `bytes`.
pub(crate) fn crc32(bytes: impl IntoIterator<Item = u8>) -> u32 {
    let step = |crc: u32, byte: u8| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| {
            (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg())
        })
    };
    !bytes.into_iter().fold(!0, step)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_checksum_of_nine_digits_is_the_known_one() {
        assert_eq!(super::crc32(*b"123456789"), 0xcbf4_3926);
    }
}
