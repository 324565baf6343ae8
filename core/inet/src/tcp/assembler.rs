//! Bytes that arrived before the ones in front of them, and the end of the stream if it did.

use alloc::collections::VecDeque;

use mbuf::Chain;
use wire::{SackBlock, SackBlocks, Seq};

/// Pieces kept; a peer that sends smaller ones gets to send them again.
const PIECES_MAX: usize = 256;

struct Piece {
    start: Seq,
    bytes: Chain,
}

impl Piece {
    fn end(&self) -> Seq {
        self.start + self.bytes.len() as u32
    }
}

/// Sorted pieces without overlaps.
#[derive(Default)]
pub(super) struct Assembler {
    pieces: VecDeque<Piece>,
    /// Where the last piece arrived: RFC 2018 wants its block first.
    latest: Seq,
    /// The number of the peer's FIN.
    fin: Option<Seq>,
}

/// What became of a piece.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Insertion {
    Kept,
    Duplicate,
    Full,
}

impl Assembler {
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty() && self.fin.is_none()
    }

    /// The stream ends at `fin`. A peer that says different things is believed once.
    pub fn end_at(&mut self, fin: Seq) {
        self.fin.get_or_insert(fin);
    }

    /// Whether the stream ends at `next`.
    pub fn ends_at(&self, next: Seq) -> bool {
        self.fin == Some(next)
    }

    /// Bytes of packet memory that the pieces hold.
    pub fn memory(&self) -> usize {
        self.pieces.iter().map(|piece| piece.bytes.memory()).sum()
    }

    /// Keeps what is new of `bytes` at `start`.
    pub fn insert(&mut self, mut start: Seq, mut bytes: Chain) -> Insertion {
        if self.pieces.len() >= PIECES_MAX || self.pieces.try_reserve(1).is_err() {
            return Insertion::Full;
        }
        let mut at = self
            .pieces
            .partition_point(|piece| !piece.start.after(start));
        if let Some(before) = at.checked_sub(1).and_then(|i| self.pieces.get(i)) {
            let known = before.end().since(start);
            if known as usize >= bytes.len() {
                // RFC 2883 4.2: the block that holds it follows the report of a duplicate.
                self.latest = start;
                return Insertion::Duplicate;
            }
            bytes.advance(known as usize);
            start += known;
        }
        self.latest = start;
        // What the new piece covers entirely goes; the last one may stick out.
        let end = start + bytes.len() as u32;
        while let Some(next) = self.pieces.get(at) {
            if !next.end().after(end) {
                self.pieces.remove(at);
                continue;
            }
            bytes.truncate(next.start.since(start) as usize);
            break;
        }
        at = at.min(self.pieces.len());
        if bytes.is_empty() {
            return Insertion::Duplicate;
        }
        self.pieces.insert(at, Piece { start, bytes });
        Insertion::Kept
    }

    /// Takes the piece that continues the stream at `next`.
    pub fn pop_at(&mut self, next: Seq) -> Option<Chain> {
        while let Some(first) = self.pieces.front() {
            if first.start.after(next) {
                return None;
            }
            let Piece { start, mut bytes } = self.pieces.pop_front()?;
            bytes.advance(next.since(start) as usize);
            if !bytes.is_empty() {
                return Some(bytes);
            }
        }
        None
    }

    /// The ranges held, the latest first.
    pub fn sack_blocks(&self) -> SackBlocks {
        let mut ranges = SackBlocks::default();
        let mut others = SackBlocks::default();
        let mut pieces = self.pieces.iter().peekable();
        while let Some(first) = pieces.next() {
            let mut block = SackBlock {
                start: first.start,
                end: first.end(),
            };
            while let Some(next) = pieces.next_if(|next| next.start == block.end) {
                block.end = next.end();
            }
            if self
                .latest
                .is_within(block.start, block.end.since(block.start))
            {
                ranges.push(block);
            } else {
                others.push(block);
            }
        }
        others
            .as_slice()
            .iter()
            .for_each(|block| ranges.push(*block));
        ranges
    }
}
