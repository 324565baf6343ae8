//! What the peer holds beyond the acknowledged bytes, as its SACK blocks say (RFC 2018).

use alloc::vec::Vec;

use wire::{SackBlock, Seq};

/// Ranges remembered; a peer can report no more at a time than it can name.
const RANGES_MAX: usize = 64;

/// Sorted ranges that neither touch nor overlap.
#[derive(Default)]
pub(super) struct Scoreboard {
    ranges: Vec<SackBlock>,
    bytes: u32,
}

impl Scoreboard {
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Bytes in all ranges.
    pub fn bytes(&self) -> u32 {
        self.bytes
    }

    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// Adds a block that lies within what was sent; returns whether it told anything new.
    pub fn add(&mut self, block: SackBlock) -> bool {
        let first = self
            .ranges
            .partition_point(|range| range.end.before(block.start));
        let touching = |range: &&SackBlock| !range.start.after(block.end);
        let count = self.ranges[first..].iter().take_while(touching).count();
        if count == 0 {
            if self.ranges.len() < RANGES_MAX {
                self.ranges.insert(first, block);
                self.bytes += block.end.since(block.start);
                return true;
            }
            return false;
        }
        let merged = SackBlock {
            start: self.ranges[first].start.min(block.start),
            end: self.ranges[first + count - 1].end.max(block.end),
        };
        let before = self.bytes;
        self.bytes += merged.end.since(merged.start);
        for range in self.ranges.drain(first + 1..first + count) {
            self.bytes -= range.end.since(range.start);
        }
        let old = core::mem::replace(&mut self.ranges[first], merged);
        self.bytes -= old.end.since(old.start);
        self.bytes != before
    }

    /// Everything before `una` is acknowledged.
    pub fn advance(&mut self, una: Seq) {
        while let Some(first) = self.ranges.first_mut() {
            if first.start.after(una) {
                return;
            }
            if first.end.after(una) {
                self.bytes -= una.since(first.start);
                first.start = una;
                return;
            }
            self.bytes -= first.end.since(first.start);
            self.ranges.remove(0);
        }
        self.clear();
    }

    /// RFC 6675 `IsLost`: bytes before this have at least `threshold` bytes, or three
    /// ranges, reported above them.
    pub fn lost_edge(&self, una: Seq, threshold: u32) -> Seq {
        let mut above = 0;
        for (count, range) in self.ranges.iter().rev().enumerate() {
            above += range.end.since(range.start);
            if above >= threshold || count + 1 >= 3 {
                return range.start;
            }
        }
        una
    }

    /// Bytes in `[start, end)` that are in no range.
    pub fn missing(&self, start: Seq, end: Seq) -> u32 {
        let covered: u32 = self
            .ranges
            .iter()
            .map(|range| range.end.min(end).since(range.start.max(start)))
            .sum();
        end.since(start) - covered
    }

    /// The first gap at or after `from` that starts before `end`.
    pub fn next_gap(&self, from: Seq, end: Seq) -> Option<SackBlock> {
        let mut start = from;
        for range in &self.ranges {
            if range.start.after(start) {
                let gap = SackBlock {
                    start,
                    end: range.start.min(end),
                };
                return start.before(end).then_some(gap);
            }
            start = start.max(range.end);
        }
        start.before(end).then_some(SackBlock { start, end })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(start: u32, end: u32) -> SackBlock {
        SackBlock {
            start: Seq(start),
            end: Seq(end),
        }
    }

    #[test]
    fn ranges_merge_and_gaps_are_found() {
        let mut board = Scoreboard::default();
        assert!(board.add(block(20, 30)) && board.add(block(40, 50)) && board.add(block(10, 12)));
        assert!(!board.add(block(22, 28)));
        assert_eq!((board.bytes(), board.missing(Seq(0), Seq(60))), (22, 38));
        assert_eq!(board.next_gap(Seq(0), Seq(60)), Some(block(0, 10)));
        assert_eq!(board.next_gap(Seq(10), Seq(60)), Some(block(12, 20)));
        assert_eq!(board.next_gap(Seq(25), Seq(35)), Some(block(30, 35)));
        assert!(board.add(block(12, 40)));
        assert_eq!(
            (board.bytes(), board.next_gap(Seq(0), Seq(10))),
            (40, Some(block(0, 10)))
        );
        board.advance(Seq(45));
        assert_eq!(board.bytes(), 5);
        assert_eq!(board.next_gap(Seq(45), Seq(60)), Some(block(50, 60)));
        board.advance(Seq(60));
        assert!(board.is_empty());
    }

    #[test]
    fn a_loss_needs_enough_above_it() {
        let mut board = Scoreboard::default();
        board.add(block(10, 20));
        assert_eq!(board.lost_edge(Seq(0), 15), Seq(0));
        board.add(block(30, 40));
        assert_eq!(board.lost_edge(Seq(0), 15), Seq(10));
        board.add(block(50, 51));
        assert_eq!(board.lost_edge(Seq(0), 1000), Seq(10));
    }
}
