//! Advanced descriptors: sixteen bytes, as two little-endian words of 64 bits.
//!
//! Receive: 7.1.5 ("advanced receive descriptors"), one buffer each. Transmit: 7.2.2, a
//! *context* says where headers lie and what to do with them, *data* names bytes.

use hal::{RxNotes, Span};
use mbuf::Checksum;

/// A descriptor.
pub(crate) type Words = [u64; 2];

/// Bytes of a descriptor.
pub(crate) const BYTES: usize = 16;

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
const TX_REPORT_STATUS: u64 = 1 << 27;
const TX_ADVANCED: u64 = 1 << 29;
/// Written back: the card has read the descriptor and all before it.
const TX_DONE: u64 = 1 << 32;
/// The longest piece that a data descriptor names.
pub(crate) const DATA_BYTES_MAX: u32 = 0xffff;

/// An empty buffer for the card to fill. The second word, the address of a buffer for
/// split headers, is where the card sets its mark, so it begins as zero.
#[inline]
pub(crate) fn receive(room: Span) -> Words {
    [room.addr().0, 0]
}

/// What the card wrote about a received frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Received {
    pub(crate) len: u16,
    pub(crate) is_last: bool,
    pub(crate) is_bad: bool,
    pub(crate) checksum: Checksum,
    pub(crate) tag: Option<u16>,
}

/// Whether the card has filled the buffer.
#[inline]
pub(crate) fn is_received(status: u64) -> bool {
    status & RX_DONE != 0
}

/// Reads the second word of a receive descriptor; `None` while the card has the buffer.
#[inline]
pub(crate) fn received(status: u64) -> Option<Received> {
    if !is_received(status) {
        return None;
    }
    let is_verified = status & (RX_TRANSPORT_SUMMED | RX_BAD_TRANSPORT_SUM) == RX_TRANSPORT_SUMMED;
    Some(Received {
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

/// What the first word adds.
#[inline]
pub(crate) fn notes(facts: u64, tag: Option<u16>) -> RxNotes {
    RxNotes {
        hash: (facts & RX_HASH_KIND != 0).then_some((facts >> RX_HASH_SHIFT) as u32),
        tag,
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

/// A piece of a frame, with commands and options that all its pieces share. The last one
/// asks for a report, which frees the whole frame.
#[inline]
pub(crate) fn data(piece: Span, is_last: bool, commands: u32, options: u32) -> Words {
    let last = if is_last {
        TX_END_OF_PACKET | TX_REPORT_STATUS
    } else {
        0
    };
    let commands = TX_DATA | TX_ADVANCED | TX_INSERT_FCS | last | u64::from(commands);
    let low = commands | u64::from(piece.len());
    [piece.addr().0, low | u64::from(options) << 32]
}

/// Whether the card is done with a transmit descriptor that asked for a report.
#[inline]
pub(crate) fn is_sent(status: u64) -> bool {
    status & TX_DONE != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_that_the_card_still_has_is_not_read() {
        assert_eq!(received(0), None);
        assert_eq!(received(1500 << 32 | RX_END_OF_FRAME), None);
    }

    #[test]
    fn a_checksum_counts_as_verified_only_if_the_card_looked_and_agreed() {
        let status = |bits: u64| received(60 << 32 | bits).map(|frame| frame.checksum);
        assert_eq!(status(0x23), Some(Checksum::Verified));
        assert_eq!(status(0x03), Some(Checksum::Unknown), "not looked at");
        assert_eq!(status(0x2000_0023), Some(Checksum::Unknown), "wrong");
    }

    #[test]
    fn a_tag_is_read_only_where_one_was_taken_out() {
        let frame = received(0x1234 << 48 | 60 << 32 | 0x0b).unwrap();
        assert_eq!((frame.len, frame.tag), (60, Some(0x1234)));
        assert_eq!(received(0x1234 << 48 | 60 << 32 | 0x03).unwrap().tag, None);
    }

    #[test]
    fn a_hash_is_read_only_where_one_was_computed() {
        assert_eq!(
            notes(0xdead_beef << 32 | 0x41, None).hash,
            Some(0xdead_beef)
        );
        assert_eq!(notes(0xdead_beef << 32 | 0x40, None).hash, None);
    }
}
