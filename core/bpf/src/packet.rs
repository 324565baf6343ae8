//! A packet in several pieces, and where a filter's offsets count from.

/// Offsets from here up count from the network header (`SKF_NET_OFF`).
const FROM_NETWORK: u32 = -0x10_0000_i32 as u32;
/// Offsets from here up count from the link header (`SKF_LL_OFF`).
const FROM_LINK: u32 = -0x20_0000_i32 as u32;

/// The bytes of a packet, in order.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    parts: &'a [&'a [u8]],
    start: usize,
    network: usize,
    end: usize,
}

impl<'a> Packet<'a> {
    /// The packet that `parts` make up, link header first. The filter's byte 0 is at `start`:
    /// 0 on a socket that sees link headers, behind them on another. The network header is
    /// at `network`. Both are cut to the packet's length.
    pub fn new(parts: &'a [&'a [u8]], start: usize, network: usize) -> Self {
        let end = parts
            .iter()
            .fold(0_usize, |sum, part| sum.saturating_add(part.len()));
        Self {
            parts,
            start: start.min(end),
            network: network.min(end),
            end,
        }
    }

    /// Bytes that the filter sees.
    pub fn len(&self) -> usize {
        self.end - self.start
    }

    /// Whether the filter sees none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes at an offset as a filter writes it, if all of them are the packet's.
    pub(crate) fn load<const N: usize>(&self, offset: u32) -> Option<[u8; N]> {
        let (base, offset) = match offset {
            0..0x8000_0000 => (self.start, offset),
            FROM_NETWORK.. => (self.network, offset - FROM_NETWORK),
            FROM_LINK.. => (0, offset - FROM_LINK),
            _ => return None,
        };
        self.read(base.checked_add(offset as usize)?)
    }

    /// The bytes `at` behind the filter's byte 0.
    pub(crate) fn visible<const N: usize>(&self, at: usize) -> Option<[u8; N]> {
        self.read(self.start.checked_add(at)?)
    }

    /// The bytes `at` behind the packet's first byte. They seldom lie in two parts.
    fn read<const N: usize>(&self, mut at: usize) -> Option<[u8; N]> {
        let mut parts = self.parts.iter();
        let mut bytes = loop {
            let part = parts.next()?;
            if let Some(rest) = part.get(at..).filter(|rest| !rest.is_empty()) {
                break rest.iter();
            }
            at -= part.len();
        };
        let mut all = [0; N];
        for byte in &mut all {
            *byte = loop {
                match bytes.next() {
                    Some(byte) => break *byte,
                    None => bytes = parts.next()?.iter(),
                }
            };
        }
        Some(all)
    }
}
