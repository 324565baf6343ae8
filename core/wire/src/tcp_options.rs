//! TCP options: MSS, window scale and timestamps (RFC 7323), SACK (RFC 2018).
//!
//! Nearly every segment carries just timestamps in their recommended layout, which is
//! recognised in one comparison.

use crate::bytes::{put, put_u16, put_u32, u8_at, u16_at, u32_at};
use crate::tcp::Seq;

const END: u8 = 0;
const NOP: u8 = 1;
const MSS: u8 = 2;
const WINDOW_SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const SACK: u8 = 5;
const TIMESTAMPS: u8 = 8;
const ALIGNED_TIMESTAMPS: u32 = 0x0101_080a;
/// Bytes of that layout.
pub(crate) const TIMESTAMPS_BYTES: usize = 12;

/// Bytes that options may take.
const OPTIONS_BYTES_MAX: usize = 40;

/// RFC 7323 section 2.3: a larger shift is read as this one.
const WINDOW_SCALE_MAX: u8 = 14;

/// The timestamps option.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Timestamps {
    /// The sender's clock.
    pub value: u32,
    /// The last clock that the sender saw of the receiver.
    pub echo: u32,
}

impl Timestamps {
    /// Writes the recommended layout (RFC 7323 appendix A).
    #[inline]
    pub(crate) fn emit(self, space: &mut [u8; TIMESTAMPS_BYTES]) {
        put_u32(space, 0, ALIGNED_TIMESTAMPS);
        put_u32(space, 4, self.value);
        put_u32(space, 8, self.echo);
    }
}

/// Bytes `[start, end)` that arrived out of order.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SackBlock {
    /// First byte.
    pub start: Seq,
    /// One behind the last byte.
    pub end: Seq,
}

/// Up to four blocks, the freshest first.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SackBlocks {
    blocks: [SackBlock; 4],
    count: u8,
}

impl SackBlocks {
    /// Most blocks that fit beside timestamps, and without them.
    pub const MAX_WITH_TIMESTAMPS: usize = 3;
    /// Most blocks that fit at all.
    pub const MAX: usize = 4;

    /// Adds a block; one too many is dropped.
    pub fn push(&mut self, block: SackBlock) {
        if let Some(slot) = self.blocks.get_mut(usize::from(self.count)) {
            *slot = block;
            self.count += 1;
        }
    }

    /// The blocks.
    #[inline]
    pub fn as_slice(&self) -> &[SackBlock] {
        self.blocks
            .get(..usize::from(self.count))
            .unwrap_or_default()
    }
}

/// The options of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TcpOptions {
    /// Largest segment that the sender takes; in SYNs.
    pub mss: Option<u16>,
    /// Shift of the sender's windows, at most 14; in SYNs.
    pub window_scale: Option<u8>,
    /// The sender understands SACK; in SYNs.
    pub sack_permitted: bool,
    /// Clock and echo.
    pub timestamps: Option<Timestamps>,
    /// What the sender holds out of order.
    pub sack: SackBlocks,
}

impl TcpOptions {
    /// Reads options; unknown ones are skipped, and reading ends at a malformed one.
    #[inline]
    pub fn parse(bytes: &[u8]) -> Self {
        if bytes.len() != TIMESTAMPS_BYTES || u32_at(bytes, 0) != ALIGNED_TIMESTAMPS {
            return Self::of_list(bytes);
        }
        Self {
            timestamps: Some(Timestamps {
                value: u32_at(bytes, 4),
                echo: u32_at(bytes, 8),
            }),
            ..Self::default()
        }
    }

    fn of_list(bytes: &[u8]) -> Self {
        let mut options = Self::default();
        options.parse_list(bytes);
        options
    }

    fn parse_list(&mut self, mut bytes: &[u8]) {
        loop {
            match bytes {
                [] | [END, ..] => return,
                [NOP, rest @ ..] => bytes = rest,
                [kind, len, ..] if *len >= 2 && usize::from(*len) <= bytes.len() => {
                    let (option, rest) = bytes.split_at(usize::from(*len));
                    self.parse_one(*kind, &option[2..]);
                    bytes = rest;
                }
                _ => return,
            }
        }
    }

    fn parse_one(&mut self, kind: u8, value: &[u8]) {
        match (kind, value.len()) {
            (MSS, 2) => self.mss = Some(u16_at(value, 0)),
            (WINDOW_SCALE, 1) => self.window_scale = Some(u8_at(value, 0).min(WINDOW_SCALE_MAX)),
            (SACK_PERMITTED, 0) => self.sack_permitted = true,
            (TIMESTAMPS, 8) => {
                self.timestamps = Some(Timestamps {
                    value: u32_at(value, 0),
                    echo: u32_at(value, 4),
                });
            }
            (SACK, _) => {
                for block in value.chunks_exact(8) {
                    let (start, end) = (Seq(u32_at(block, 0)), Seq(u32_at(block, 4)));
                    if start.before(end) {
                        self.sack.push(SackBlock { start, end });
                    }
                }
            }
            _ => {}
        }
    }

    /// Blocks that fit behind the other options.
    fn sack_fitting(&self) -> &[SackBlock] {
        let room = if self.timestamps.is_some() {
            SackBlocks::MAX_WITH_TIMESTAMPS
        } else {
            SackBlocks::MAX
        };
        let blocks = self.sack.as_slice();
        &blocks[..blocks.len().min(room)]
    }

    /// The clocks, if there is nothing else.
    #[inline]
    pub(crate) fn only_timestamps(&self) -> Option<Timestamps> {
        let has_others = self.mss.is_some()
            || self.window_scale.is_some()
            || self.sack_permitted
            || self.sack.count != 0;
        self.timestamps.filter(|_| !has_others)
    }

    /// Bytes that [`emit`](Self::emit) writes: a multiple of four.
    #[inline]
    pub fn len(&self) -> usize {
        match self.only_timestamps() {
            Some(_) => TIMESTAMPS_BYTES,
            None => self.len_of_list(),
        }
    }

    pub(crate) fn len_of_list(&self) -> usize {
        let mut len = 0;
        if self.timestamps.is_some() {
            len += TIMESTAMPS_BYTES;
        }
        if self.mss.is_some() {
            len += 4;
        }
        if self.window_scale.is_some() {
            len += 4;
        }
        if self.sack_permitted {
            len += 4;
        }
        let blocks = self.sack_fitting().len();
        if blocks > 0 {
            len += 4 + 8 * blocks;
        }
        len.min(OPTIONS_BYTES_MAX)
    }

    /// Whether there are no options.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Writes [`len`](Self::len) bytes.
    #[inline]
    pub fn emit(&self, bytes: &mut [u8]) {
        match (self.only_timestamps(), bytes.first_chunk_mut()) {
            (Some(timestamps), Some(space)) => timestamps.emit(space),
            _ => self.emit_list(bytes),
        }
    }

    fn emit_list(&self, bytes: &mut [u8]) {
        let mut at = 0;
        if let Some(mss) = self.mss {
            put(bytes, at, [MSS, 4]);
            put_u16(bytes, at + 2, mss);
            at += 4;
        }
        if let Some(shift) = self.window_scale {
            put(bytes, at, [NOP, WINDOW_SCALE, 3, shift]);
            at += 4;
        }
        if self.sack_permitted {
            put(bytes, at, [NOP, NOP, SACK_PERMITTED, 2]);
            at += 4;
        }
        if let Some(timestamps) = self.timestamps {
            let space = bytes.get_mut(at..).and_then(<[u8]>::first_chunk_mut);
            if let Some(space) = space {
                timestamps.emit(space);
            }
            at += TIMESTAMPS_BYTES;
        }
        let blocks = self.sack_fitting();
        if !blocks.is_empty() {
            put(bytes, at, [NOP, NOP, SACK, (2 + 8 * blocks.len()) as u8]);
            at += 4;
        }
        for block in blocks {
            put_u32(bytes, at, block.start.0);
            put_u32(bytes, at + 4, block.end.0);
            at += 8;
        }
    }
}
