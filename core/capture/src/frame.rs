//! A packet as the link layer hands it to a sniffer.

/// The link address of whoever sent it, at most eight bytes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Sender {
    pub(crate) bytes: [u8; 8],
    pub(crate) len: u8,
}

impl Sender {
    /// Cut to eight bytes.
    pub fn new(address: &[u8]) -> Self {
        let mut bytes = [0; 8];
        let len = address.len().min(bytes.len());
        bytes[..len].copy_from_slice(&address[..len]);
        Self {
            bytes,
            len: len as u8,
        }
    }

    /// The address, filled up with zeros.
    pub fn bytes(&self) -> [u8; 8] {
        self.bytes
    }

    /// How long it is.
    pub fn len(&self) -> u8 {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// A VLAN tag that a card took off.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Tag {
    /// Identifier and priority.
    pub control: u16,
    /// The tag's EtherType.
    pub ether_type: u16,
}

/// A packet and what is known of it.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// Its bytes, link header first.
    pub parts: &'a [&'a [u8]],
    /// Where the network header starts.
    pub network: usize,
    /// The interface's number.
    pub interface: u32,
    /// `ARPHRD_*` of the interface.
    pub hardware_type: u16,
    /// The EtherType.
    pub protocol: u16,
    /// `PACKET_HOST`, `PACKET_BROADCAST`, ...
    pub packet_type: u8,
    /// Who sent it.
    pub sender: Sender,
    /// A tag that is no longer in the bytes.
    pub tag: Option<Tag>,
    /// The hash of its flow, or zero.
    pub flow_hash: u32,
    /// One of the two `CHECKSUM_*` of [`crate::status`], or zero.
    pub checksum: u32,
}

impl<'a> Frame<'a> {
    /// Bytes in all.
    pub fn len(&self) -> usize {
        self.parts
            .iter()
            .fold(0_usize, |sum, part| sum.saturating_add(part.len()))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The pieces of the `keep` bytes behind the first `skip`.
    pub fn pieces(&self, mut skip: usize, mut keep: usize) -> impl Iterator<Item = &'a [u8]> {
        self.parts.iter().filter_map(move |part| {
            let (skipped, rest) = part.split_at(skip.min(part.len()));
            skip -= skipped.len();
            let piece = &rest[..keep.min(rest.len())];
            keep -= piece.len();
            (!piece.is_empty()).then_some(piece)
        })
    }
}
