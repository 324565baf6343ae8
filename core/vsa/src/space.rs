//! Which blocks of a disk are free.
//!
//! Free extents by their first block, so that neighbours join, found best fit: the smallest that
//! suffices, so that large ones stay; if none does, the largest are taken together. A search walks all free extents, of
//! which there are at most one more than used ones ([`EXTENTS_MAX`](crate::EXTENTS_MAX)).

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::error::Error;
use crate::extent::{Blocks, Extent};

/// The free blocks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Space {
    free: BTreeMap<u64, Blocks>,
}

impl Space {
    /// All blocks of `whole` but those in `used`, which is sorted and has no overlaps.
    pub fn around(whole: Extent, used: &[Extent]) -> Self {
        let mut space = Self {
            free: BTreeMap::new(),
        };
        let mut from = whole.first();
        for extent in used {
            space.insert(from, extent.first().saturating_sub(from));
            from = extent.end();
        }
        space.insert(from, whole.end().saturating_sub(from));
        space
    }

    fn insert(&mut self, first: u64, count: Blocks) {
        if count != 0 {
            self.free.insert(first, count);
        }
    }

    /// How many blocks are free.
    pub fn blocks(&self) -> Blocks {
        self.free.values().sum()
    }

    /// Takes `count` blocks in at most `pieces_max` pieces; those right behind `end` first. A
    /// failure may have taken some.
    pub fn take(
        &mut self,
        count: Blocks,
        end: Option<u64>,
        pieces_max: usize,
    ) -> Result<Vec<Extent>, Error> {
        if count > self.blocks() {
            return Err(Error::NoSpace);
        }
        let mut taken = Vec::new();
        let mut left = count;
        let mut next = end.filter(|end| self.free.contains_key(end));
        while left != 0 && taken.len() < pieces_max {
            let first = next.take().or_else(|| self.best(left));
            let piece = first.and_then(|first| self.cut(first, left));
            left -= piece.map_or(0, Extent::count);
            taken.extend(piece);
        }
        match left {
            0 => Ok(taken),
            _ => Err(Error::TooFragmented),
        }
    }

    /// The smallest free extent with `count` blocks, or the largest of all.
    fn best(&self, count: Blocks) -> Option<u64> {
        let enough = self.free.iter().filter(|(_, has)| **has >= count);
        let smallest = enough.min_by_key(|(_, has)| **has);
        let largest = || self.free.iter().max_by_key(|(_, has)| **has);
        smallest.or_else(largest).map(|(first, _)| *first)
    }

    /// Up to `count` blocks of the free extent at `first`.
    fn cut(&mut self, first: u64, count: Blocks) -> Option<Extent> {
        let has = self.free.remove(&first)?;
        let (front, rest) = Extent::new(first, has)?.split_at(count);
        if let Some(rest) = rest {
            self.insert(rest.first(), rest.count());
        }
        front
    }

    /// Gives blocks back.
    pub fn give(&mut self, extent: Extent) {
        let (mut first, mut end) = (extent.first(), extent.end());
        if let Some(count) = self.free.remove(&end) {
            end += count;
        }
        let before = self.free.range(..first).next_back();
        if let Some((at, count)) = before.map(|(at, count)| (*at, *count))
            && at + count == first
        {
            first = at;
        }
        self.insert(first, end - first);
    }
}
