//! Advanced descriptors: sixteen bytes, as two little-endian words of 64 bits.
//!
//! Receive: 7.1.5 ("advanced receive descriptors"), one buffer each. Transmit: 7.2.2, a
//! *context* says where headers lie and what to do with them, *data* names bytes.

use hal::{RxNotes, Span};
use intel::{Filled, Format, Words};
use mbuf::Checksum;

/// Written back, first word: the kind of hash, and the hash.
const RX_HASH_KIND: u64 = 0xf;
const RX_HASH_SHIFT: u32 = 32;
/// Written back, second word: status and errors in the low half, then length and tag.
const RX_DONE: u64 = 1 << 0;
const RX_END_OF_FRAME: u64 = 1 << 1;
const RX_TAG_TAKEN: u64 = 1 << 3;
const RX_TRANSPORT_SUMMED: u64 = 1 << 5;
/// Symbol, sequence, FCS, carrier and data errors.
const RX_BAD_FRAME: u64 = 1 << 24 | 1 << 25 | 1 << 26 | 1 << 28 | 1 << 31;
const RX_BAD_TRANSPORT_SUM: u64 = 1 << 29;
const RX_LEN_SHIFT: u32 = 32;
const RX_TAG_SHIFT: u32 = 48;

/// Transmit commands, in the low half of the second word.
const TX_CONTEXT: u64 = 0b0010 << 20;
const TX_DATA: u64 = 0b0011 << 20;
const TX_END_OF_PACKET: u64 = 1 << 24;
const TX_INSERT_FCS: u64 = 1 << 25;
const TX_ADVANCED: u64 = 1 << 29;
/// The longest piece that a data descriptor names.
pub(crate) const DATA_BYTES_MAX: u32 = 0xffff;

/// Receive descriptors of the 82576, once written back.
pub(crate) struct Advanced;

impl Format for Advanced {
    type Notes = RxNotes;

    #[inline]
    fn filled(status: u64) -> Option<Filled> {
        if status & RX_DONE == 0 {
            return None;
        }
        let is_verified =
            status & (RX_TRANSPORT_SUMMED | RX_BAD_TRANSPORT_SUM) == RX_TRANSPORT_SUMMED;
        Some(Filled {
            len: (status >> RX_LEN_SHIFT) as u16,
            is_last: status & RX_END_OF_FRAME != 0,
            is_bad: status & RX_BAD_FRAME != 0,
            checksum: if is_verified {
                Checksum::Verified
            } else {
                Checksum::Unknown
            },
            tag: (status & RX_TAG_TAKEN != 0).then_some((status >> RX_TAG_SHIFT) as u16),
        })
    }

    /// The hash is in the first word.
    #[inline]
    fn notes(facts: impl FnOnce() -> u64, _: u64) -> RxNotes {
        let facts = facts();
        RxNotes {
            hash: (facts & RX_HASH_KIND != 0).then_some((facts >> RX_HASH_SHIFT) as u32),
        }
    }
}

/// A context: lengths of the headers and the tag, then commands and the slot, length of
/// the transport header, segment size.
#[inline]
pub(crate) fn context(lengths: u32, kind: u32, slot_and_segment: u32) -> Words {
    let commands = TX_CONTEXT | TX_ADVANCED | u64::from(kind);
    [
        u64::from(lengths),
        commands | u64::from(slot_and_segment) << 32,
    ]
}

/// A piece of a frame, with commands and options that all its pieces share.
#[inline]
pub(crate) fn data(piece: Span, is_last: bool, commands: u32, options: u32) -> Words {
    let last = if is_last { TX_END_OF_PACKET } else { 0 };
    let commands = TX_DATA | TX_ADVANCED | TX_INSERT_FCS | last | u64::from(commands);
    let low = commands | u64::from(piece.len());
    [piece.addr().0, low | u64::from(options) << 32]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_that_the_card_still_has_is_not_read() {
        assert_eq!(Advanced::filled(0), None);
        assert_eq!(Advanced::filled(1500 << 32 | RX_END_OF_FRAME), None);
    }

    #[test]
    fn a_checksum_counts_as_verified_only_if_the_card_looked_and_agreed() {
        let status = |bits: u64| Advanced::filled(60 << 32 | bits).map(|frame| frame.checksum);
        assert_eq!(status(0x23), Some(Checksum::Verified));
        assert_eq!(status(0x03), Some(Checksum::Unknown), "not looked at");
        assert_eq!(status(0x2000_0023), Some(Checksum::Unknown), "wrong");
    }

    #[test]
    fn a_tag_is_read_only_where_one_was_taken_out() {
        let tagged = 0x1234 << 48 | 60 << 32;
        assert_eq!(Advanced::filled(tagged | 0x0b).unwrap().len, 60);
        assert_eq!(Advanced::filled(tagged | 0x0b).unwrap().tag, Some(0x1234));
        assert_eq!(Advanced::filled(tagged | 0x03).unwrap().tag, None);
    }

    #[test]
    fn a_hash_is_read_only_where_one_was_computed() {
        let hash = |facts| Advanced::notes(|| facts, 0).hash;
        assert_eq!(hash(0xdead_beef << 32 | 0x41), Some(0xdead_beef));
        assert_eq!(hash(0xdead_beef << 32 | 0x40), None);
    }
}
