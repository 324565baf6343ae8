//! What the card is told of a frame to send beside its bytes.
//!
//! A stack says "sum from here, store there" (`mbuf::ChecksumOffload`). The 82576 wants to
//! know headers instead: how long the Ethernet and the IP header are, and which protocol
//! follows (7.2.2.2, 7.2.5). So the EtherType is looked at, and what does not fit the
//! description is refused before anything is changed.
//!
//! A context holds for all frames until the next one in its slot. The card has two slots
//! for each queue: one is used for checksums and tags, one for segmentation, because
//! a server's acknowledgements lie between its large segments.

use hal::Capabilities;
use intel::Words;
use mbuf::{ChecksumOffload, SegmentKind, SegmentOffload, TxFrame};

use crate::descriptor;
use crate::headers::{ETHERNET_BYTES, Headers};

/// What this card promises.
pub(crate) const CAPABILITIES: Capabilities = Capabilities {
    checksum: true,
    tso4: true,
    tso6: true,
    guest_checksum: true,
    guest_coalesce: false,
    tags: true,
};

/// Where transport headers keep their checksum.
const TCP_CHECKSUM_AT: u16 = 16;
const UDP_CHECKSUM_AT: u16 = 6;
const TCP_BYTES: u16 = 20;

/// Fields of a context: lengths of headers, the tag; kind; slot, transport, segment.
const ETHERNET_SHIFT: u32 = 9;
const TAG_SHIFT: u32 = 16;
const KIND_IP4: u32 = 1 << 10;
const KIND_TCP: u32 = 0b01 << 11;
const SLOT_SHIFT: u32 = 4;
const TRANSPORT_SHIFT: u32 = 8;
const SEGMENT_SHIFT: u32 = 16;

/// Commands and options of data descriptors.
const COMMAND_TAG: u32 = 1 << 30;
const COMMAND_SEGMENT: u32 = 1 << 31;
const OPTION_IP_SUM: u32 = 1 << 8;
const OPTION_TRANSPORT_SUM: u32 = 1 << 9;
const PAYLOAD_SHIFT: u32 = 14;
/// What eighteen bits hold.
const PAYLOAD_MAX: usize = (1 << 18) - 1;

/// Contexts that a queue of the card remembers.
pub(crate) const SLOTS: usize = 2;
const SLOT_CHECKSUM: usize = 0;
const SLOT_SEGMENT: usize = 1;

/// The frame asks for what the card cannot do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Unsupported;

/// The plan of the last frame with a checksum, which is that of most that follow, but for their lengths.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Summed {
    checksum: ChecksumOffload,
    ethertype: u16,
    plan: Plan,
}

impl Summed {
    /// What is worth keeping of a plan for a frame.
    #[inline]
    fn of(frame: &TxFrame, plan: Plan) -> Option<Self> {
        let is_plain = frame.tag.is_none() && frame.segment.is_none();
        Some(Self {
            checksum: frame.checksum.filter(|_| is_plain)?,
            ethertype: Headers::ethertype(frame)?,
            plan,
        })
    }

    /// The plan for another frame, if it is the same but for the length.
    #[inline]
    fn plan(&self, frame: &TxFrame) -> Option<Plan> {
        let len = frame.chain.len();
        let field = usize::from(self.checksum.start) + usize::from(self.checksum.offset);
        let is_same = frame.checksum == Some(self.checksum)
            && frame.tag.is_none()
            && frame.segment.is_none()
            && Headers::ethertype(frame) == Some(self.ethertype);
        (is_same && field + 2 <= len && len <= PAYLOAD_MAX).then(|| Plan {
            options: options(SLOT_CHECKSUM, len, OPTION_TRANSPORT_SUM),
            ..self.plan
        })
    }
}

/// What to write for a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Plan {
    /// The context that must be in its slot.
    pub(crate) context: Option<(usize, Words)>,
    pub(crate) commands: u32,
    pub(crate) options: u32,
    /// Headers to prepare for segmentation.
    pub(crate) segment: Option<Headers>,
}

impl Plan {
    /// For a frame, by the last one's if that suits.
    #[inline]
    pub(crate) fn like(last: &mut Option<Summed>, frame: &TxFrame) -> Result<Self, Unsupported> {
        if let Some(plan) = last.as_ref().and_then(|last| last.plan(frame)) {
            debug_assert_eq!(Ok(plan), Self::new(frame));
            return Ok(plan);
        }
        let plan = Self::new(frame)?;
        if let Some(summed) = Summed::of(frame, plan) {
            *last = Some(summed);
        }
        Ok(plan)
    }

    /// For a frame.
    fn new(frame: &TxFrame) -> Result<Self, Unsupported> {
        let tag = frame.tag;
        let len = frame.chain.len();
        if !(ETHERNET_BYTES..=PAYLOAD_MAX).contains(&len) {
            return Err(Unsupported);
        }
        match (frame.checksum, frame.segment) {
            (None, None) => Ok(Self::plain(len, tag)),
            (Some(checksum), None) => Self::summed(frame, checksum, tag),
            (Some(checksum), Some(segment)) => Self::segmented(frame, checksum, segment, tag),
            (None, Some(_)) => Err(Unsupported),
        }
    }

    fn plain(len: usize, tag: Option<u16>) -> Self {
        let lengths = lengths(ETHERNET_BYTES as u16, 0, tag);
        Self {
            context: tag.map(|_| (SLOT_CHECKSUM, descriptor::context(lengths, 0, 0))),
            commands: tag_command(tag),
            options: options(SLOT_CHECKSUM, len, 0),
            segment: None,
        }
    }

    fn summed(
        frame: &TxFrame,
        checksum: ChecksumOffload,
        tag: Option<u16>,
    ) -> Result<Self, Unsupported> {
        let headers = Headers::find(frame, checksum.start).ok_or(Unsupported)?;
        let transport = match checksum.offset {
            TCP_CHECKSUM_AT => KIND_TCP,
            UDP_CHECKSUM_AT => 0,
            _ => return Err(Unsupported),
        };
        let field = usize::from(checksum.start) + usize::from(checksum.offset);
        if field + 2 > frame.chain.len() {
            return Err(Unsupported);
        }
        let kind = transport | kind_bits(&headers);
        let context = descriptor::context(header_lengths(&headers, tag), kind, slot(SLOT_CHECKSUM));
        Ok(Self {
            context: Some((SLOT_CHECKSUM, context)),
            commands: tag_command(tag),
            options: options(SLOT_CHECKSUM, frame.chain.len(), OPTION_TRANSPORT_SUM),
            segment: None,
        })
    }

    fn segmented(
        frame: &TxFrame,
        checksum: ChecksumOffload,
        segment: SegmentOffload,
        tag: Option<u16>,
    ) -> Result<Self, Unsupported> {
        let mut headers = Headers::find(frame, checksum.start).ok_or(Unsupported)?;
        headers.end = segment.header_len;
        let transport = headers.end.checked_sub(headers.transport);
        let transport = transport.filter(|bytes| *bytes >= TCP_BYTES);
        let transport = transport.and_then(|bytes| u8::try_from(bytes).ok());
        let transport = u32::from(transport.ok_or(Unsupported)?);
        let payload = frame.chain.len().checked_sub(usize::from(headers.end));
        let payload = payload.filter(|bytes| *bytes != 0).ok_or(Unsupported)?;
        let is_tcp = checksum.offset == TCP_CHECKSUM_AT && headers.kind == segment.kind;
        if !is_tcp || segment.mss == 0 || headers.transport_len(frame).is_none() {
            return Err(Unsupported);
        }
        let kind = KIND_TCP | kind_bits(&headers);
        let sizes = transport << TRANSPORT_SHIFT | u32::from(segment.mss) << SEGMENT_SHIFT;
        let context = descriptor::context(
            header_lengths(&headers, tag),
            kind,
            slot(SLOT_SEGMENT) | sizes,
        );
        let ip_sum = match headers.kind {
            SegmentKind::Tcp4 => OPTION_IP_SUM,
            SegmentKind::Tcp6 => 0,
        };
        Ok(Self {
            context: Some((SLOT_SEGMENT, context)),
            commands: COMMAND_SEGMENT | tag_command(tag),
            options: options(SLOT_SEGMENT, payload, OPTION_TRANSPORT_SUM | ip_sum),
            segment: Some(headers),
        })
    }
}

fn header_lengths(headers: &Headers, tag: Option<u16>) -> u32 {
    lengths(headers.ethernet, headers.transport - headers.ethernet, tag)
}

fn kind_bits(headers: &Headers) -> u32 {
    match headers.kind {
        SegmentKind::Tcp4 => KIND_IP4,
        SegmentKind::Tcp6 => 0,
    }
}

fn lengths(ethernet: u16, ip: u16, tag: Option<u16>) -> u32 {
    let tag = u32::from(tag.unwrap_or(0));
    u32::from(ip) | u32::from(ethernet) << ETHERNET_SHIFT | tag << TAG_SHIFT
}

fn tag_command(tag: Option<u16>) -> u32 {
    tag.map_or(0, |_| COMMAND_TAG)
}

fn slot(slot: usize) -> u32 {
    (slot as u32) << SLOT_SHIFT
}

/// `payload` is at most [`PAYLOAD_MAX`].
fn options(context: usize, payload: usize, sums: u32) -> u32 {
    slot(context) | sums | (payload as u32) << PAYLOAD_SHIFT
}
