//! `struct virtio_net_hdr` (section 5.1.6): what stands in front of each frame.

use mbuf::{Checksum, ChecksumOffload, Coalesced, SegmentKind, TxFrame};

/// Bytes of the header of a modern device.
pub(crate) const HEADER_BYTES: usize = 12;

/// Bytes of a checksum field.
const CHECKSUM_BYTES: usize = 2;

const NEEDS_CSUM: u8 = 1;
const DATA_VALID: u8 = 2;
const GSO_NONE: u8 = 0;
const GSO_TCPV4: u8 = 1;
const GSO_TCPV6: u8 = 4;
/// Marks TCP segments with ECN; comes on top of a type.
const GSO_ECN: u8 = 0x80;

/// The header for a frame to send.
#[inline]
pub(crate) fn encode(frame: &TxFrame) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    if let Some(checksum) = frame.checksum {
        header[0] = NEEDS_CSUM;
        header[6..8].copy_from_slice(&checksum.start.to_le_bytes());
        header[8..10].copy_from_slice(&checksum.offset.to_le_bytes());
    }
    if let Some(segment) = frame.segment {
        header[1] = match segment.kind {
            SegmentKind::Tcp4 => GSO_TCPV4,
            SegmentKind::Tcp6 => GSO_TCPV6,
        };
        header[2..4].copy_from_slice(&segment.header_len.to_le_bytes());
        header[4..6].copy_from_slice(&segment.mss.to_le_bytes());
    }
    header
}

/// What the header of a received frame says.
pub(crate) struct Received {
    pub(crate) checksum: Checksum,
    pub(crate) coalesced: Option<Coalesced>,
    /// Buffers that the frame fills; from the device, so not to be trusted.
    pub(crate) buffers: u16,
}

impl Received {
    /// Whether the header stays within a frame of `len` bytes.
    #[inline]
    pub(crate) fn fits(&self, len: usize) -> bool {
        match self.checksum {
            Checksum::Partial(ChecksumOffload { start, offset }) => {
                usize::from(start) + usize::from(offset) + CHECKSUM_BYTES <= len
            }
            Checksum::Verified | Checksum::Unknown => true,
        }
    }
}

/// Reads the header at the front of `bytes`; `None` if there are fewer.
#[inline]
pub(crate) fn decode(bytes: &[u8]) -> Option<Received> {
    let header = bytes.first_chunk::<HEADER_BYTES>()?;
    let word = |at: usize| u16::from_le_bytes([header[at], header[at + 1]]);
    let checksum = match header[0] {
        flags if flags & NEEDS_CSUM != 0 => Checksum::Partial(ChecksumOffload {
            start: word(6),
            offset: word(8),
        }),
        flags if flags & DATA_VALID != 0 => Checksum::Verified,
        _ => Checksum::Unknown,
    };
    let coalesced = (header[1] & !GSO_ECN != GSO_NONE).then(|| Coalesced { mss: word(4) });
    Some(Received {
        checksum,
        coalesced,
        buffers: word(10),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use mbuf::SegmentOffload;

    #[test]
    fn a_segment_to_cut_is_described_in_little_endian() {
        let frame = TxFrame {
            checksum: Some(ChecksumOffload {
                start: 34,
                offset: 16,
            }),
            segment: Some(SegmentOffload {
                mss: 1460,
                header_len: 66,
                kind: SegmentKind::Tcp4,
            }),
            ..TxFrame::default()
        };
        assert_eq!(encode(&frame), [1, 1, 66, 0, 0xb4, 5, 34, 0, 16, 0, 0, 0]);
    }

    #[test]
    fn a_checksum_field_outside_of_the_frame_is_noticed() {
        let header = decode(&[1, 0, 0, 0, 0, 0, 34, 0, 16, 0, 1, 0]);
        assert_eq!(header.as_ref().map(|h| h.fits(52)), Some(true));
        assert_eq!(header.as_ref().map(|h| h.fits(51)), Some(false));
        let header = decode(&[1, 0, 0, 0, 0, 0, 255, 255, 255, 255, 1, 0]);
        assert_eq!(header.map(|h| h.fits(1500)), Some(false));
    }

    #[test]
    fn a_truncated_header_is_no_header() {
        assert!(decode(&[0; HEADER_BYTES - 1]).is_none());
        assert_eq!(decode(&[0; HEADER_BYTES]).map(|h| h.buffers), Some(0));
    }
}
