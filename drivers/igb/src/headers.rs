//! Where the headers of a frame to send lie: what the card must know, and a stack does not say.

use mbuf::{SegmentKind, TxFrame};

/// Ethernet's header, and its tag.
pub(crate) const ETHERNET_BYTES: usize = 14;
const TAG_BYTES: usize = 4;
const ETHERTYPE_AT: usize = 12;
const ETHERTYPE_TAG: u16 = 0x8100;
const ETHERTYPE_IP4: u16 = 0x0800;
const ETHERTYPE_IP6: u16 = 0x86dd;
/// What nine bits of a context hold.
const IP_BYTES_MAX: u16 = 511;

/// Where the headers of a frame lie.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Headers {
    pub(crate) kind: SegmentKind,
    /// Bytes of the Ethernet header, and where the transport header begins.
    pub(crate) ethernet: u16,
    pub(crate) transport: u16,
    /// Bytes of all headers.
    pub(crate) end: u16,
}

/// A frame's first bytes.
type Front = [u8; ETHERNET_BYTES + TAG_BYTES];

#[inline]
fn front_of(frame: &TxFrame) -> Front {
    let first = frame.chain.front().map_or(&[][..], |part| part.bytes());
    first.first_chunk().copied().unwrap_or_else(|| {
        let mut front = [0; ETHERNET_BYTES + TAG_BYTES];
        frame.chain.copy_to_slice(0, &mut front);
        front
    })
}

impl Headers {
    /// Finds the IP header in front of a transport header at `transport`; `None` if there
    /// is none that the card could be told of.
    pub(crate) fn find(frame: &TxFrame, transport: u16) -> Option<Self> {
        let front = front_of(frame);
        let word = |at: usize| u16::from_be_bytes([front[at], front[at + 1]]);
        let (ethertype, ethernet) = match word(ETHERTYPE_AT) {
            ETHERTYPE_TAG => (word(ETHERTYPE_AT + TAG_BYTES), ETHERNET_BYTES + TAG_BYTES),
            ethertype => (ethertype, ETHERNET_BYTES),
        };
        let (kind, ip_min) = match ethertype {
            ETHERTYPE_IP4 => (SegmentKind::Tcp4, 20),
            ETHERTYPE_IP6 => (SegmentKind::Tcp6, 40),
            _ => return None,
        };
        let ethernet = ethernet as u16;
        let ip = transport.checked_sub(ethernet)?;
        (ip_min..=IP_BYTES_MAX).contains(&ip).then_some(Self {
            kind,
            ethernet,
            transport,
            end: transport,
        })
    }

    /// What says, with where the transport header is, where the headers of a frame lie: its EtherType, unless
    /// another follows.
    #[inline]
    pub(crate) fn ethertype(frame: &TxFrame) -> Option<u16> {
        let front = front_of(frame);
        let ethertype = u16::from_be_bytes([front[ETHERTYPE_AT], front[ETHERTYPE_AT + 1]]);
        (ethertype != ETHERTYPE_TAG).then_some(ethertype)
    }

    /// Bytes from the transport header to the frame's end, as a pseudo header counts them.
    pub(crate) fn transport_len(&self, frame: &TxFrame) -> Option<u16> {
        let len = frame.chain.len().checked_sub(usize::from(self.transport))?;
        u16::try_from(len).ok()
    }
}
