//! Descriptors: sixteen bytes, as two little-endian words of 64 bits.

use hal::Span;
use intel::{Filled, Format, Words};
use mbuf::{Checksum, ChecksumOffload};

/// "Descriptor done", in the second word: the card has filled the buffer.
const RX_DONE: u64 = 1 << 32;

/// Receive status (3.2.3.1), from bit 32 of the second word on.
const END_OF_FRAME: u8 = 1 << 1;
/// The card took a VLAN tag out, which is in the last half word.
const TAG_TAKEN: u8 = 1 << 3;
const IGNORE_CHECKSUM: u8 = 1 << 2;
const TRANSPORT_SUMMED: u8 = 1 << 5;
/// Receive errors (3.2.3.2): symbol, sequence, CRC, carrier, data.
const BAD_FRAME: u8 = 1 << 0 | 1 << 1 | 1 << 2 | 1 << 4 | 1 << 7;
const BAD_TRANSPORT_SUM: u8 = 1 << 5;

/// Transmit commands (3.3.7), bits 24 to 31 of the third half word.
const END_OF_PACKET: u64 = 1 << 24;
const INSERT_FCS: u64 = 1 << 25;
const EXTENDED: u64 = 1 << 29;
const INSERT_TAG: u64 = 1 << 30;
/// Descriptor type "data"; a context is type 0.
const TYPE_DATA: u64 = 1 << 20;
/// Packet option "insert the TCP or UDP checksum".
const INSERT_CHECKSUM: u64 = 1 << (32 + 9);
/// Where a VLAN tag's second half is, in descriptors of both directions.
const TAG_SHIFT: u32 = 48;
/// The longest piece that a data descriptor names.
pub(crate) const DATA_BYTES_MAX: u32 = (1 << 20) - 1;

/// Receive descriptors of the 8254x, once written back.
pub(crate) struct Legacy;

impl Format for Legacy {
    type Notes = ();

    #[inline]
    fn filled(word: u64) -> Option<Filled> {
        if word & RX_DONE == 0 {
            return None;
        }
        let (status, errors) = ((word >> 32) as u8, (word >> 40) as u8);
        let is_verified = status & (TRANSPORT_SUMMED | IGNORE_CHECKSUM) == TRANSPORT_SUMMED
            && errors & BAD_TRANSPORT_SUM == 0;
        Some(Filled {
            len: word as u16,
            is_last: status & END_OF_FRAME != 0,
            is_bad: errors & BAD_FRAME != 0,
            checksum: if is_verified {
                Checksum::Verified
            } else {
                Checksum::Unknown
            },
            tag: (status & TAG_TAKEN != 0).then_some((word >> TAG_SHIFT) as u16),
        })
    }

    #[inline]
    fn notes(_: impl FnOnce() -> u64, _: u64) {}
}

/// Tells the card where checksums of the frames to come begin and where they are stored
/// (3.3.6). `None` if the fields are too small for it.
pub(crate) fn context(checksum: ChecksumOffload) -> Option<Words> {
    let start = u8::try_from(checksum.start).ok()?;
    let field = u8::try_from(checksum.start.checked_add(checksum.offset)?).ok()?;
    // The header's checksum is not asked for, but its place must be a sane one.
    let places = u64::from(start) | u64::from(field) << 8;
    Some([places | places << 32, EXTENDED])
}

/// What a frame asks of the card, which all its pieces say.
#[inline]
pub(crate) fn wishes(has_checksum: bool, tag: Option<u16>) -> u64 {
    let checksum = if has_checksum { INSERT_CHECKSUM } else { 0 };
    let tag = tag.map_or(0, |tag| INSERT_TAG | u64::from(tag) << TAG_SHIFT);
    checksum | tag
}

/// A piece of a frame.
#[inline]
pub(crate) fn data(piece: Span, is_last: bool, wishes: u64) -> Words {
    let last = if is_last { END_OF_PACKET } else { 0 };
    let command = TYPE_DATA | EXTENDED | INSERT_FCS | last | wishes;
    [piece.addr().0, command | u64::from(piece.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_that_the_card_still_has_is_not_read() {
        assert_eq!(Legacy::filled(0), None);
        assert_eq!(Legacy::filled(1500), None);
    }

    #[test]
    fn a_checksum_counts_as_verified_only_if_the_card_looked_and_agreed() {
        let status = |status: u64, errors: u64| {
            Legacy::filled(60 | status << 32 | errors << 40).map(|frame| frame.checksum)
        };
        assert_eq!(status(0x23, 0), Some(Checksum::Verified));
        assert_eq!(status(0x27, 0), Some(Checksum::Unknown), "QEMU: ignore");
        assert_eq!(status(0x03, 0), Some(Checksum::Unknown), "not looked at");
        assert_eq!(status(0x23, 0x20), Some(Checksum::Unknown), "wrong");
    }

    #[test]
    fn a_tag_is_read_only_where_one_was_taken_out() {
        let tag = |status: u64| {
            let filled = Legacy::filled(60 | status << 32 | 0x6007 << TAG_SHIFT);
            filled.and_then(|frame| frame.tag)
        };
        assert_eq!((tag(0x0b), tag(0x03)), (Some(0x6007), None));
    }

    #[test]
    fn a_context_holds_start_and_place_of_the_checksum() {
        let tcp = ChecksumOffload {
            start: 34,
            offset: 16,
        };
        assert_eq!(context(tcp), Some([0x3222_0000_3222, 1 << 29]));
        let far = ChecksumOffload {
            start: 250,
            offset: 6,
        };
        assert_eq!(context(far), None);
    }
}
