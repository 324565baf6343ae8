//! From a block of an area to a block of the disk.
//!
//! A map is made once for whoever holds the area, and asked for each request: it is one allocation, never
//! changes, and is searched by halves. What it answers are blocks of its own extents and no others:
//! a range that passes the area's end is refused as a whole.

use alloc::boxed::Box;

use crate::areas::AreaId;
use crate::extent::{Blocks, Extent};

/// Blocks that are not the area's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OutOfArea;

/// Where an area's blocks are, as of one version of it.
///
/// Invariant: `runs` is not empty; the ends grow by each run's count, the last one is the area's size.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Map {
    area: AreaId,
    version: u64,
    runs: Box<[Run]>,
}

/// An extent, and the block of the area behind its last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Run {
    end: u64,
    extent: Extent,
}

impl Map {
    pub(crate) fn new(area: AreaId, version: u64, extents: &[Extent]) -> Self {
        let mut end = 0;
        let runs = extents.iter().map(|extent| {
            end += extent.count();
            Run {
                end,
                extent: *extent,
            }
        });
        Self {
            area,
            version,
            runs: runs.collect(),
        }
    }

    /// Whose it is.
    pub fn area(&self) -> AreaId {
        self.area
    }

    /// The version of the area that it is of.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// How many blocks there are.
    pub fn blocks(&self) -> Blocks {
        self.runs.last().map_or(0, |run| run.end)
    }

    /// What lies together with a block of the area.
    pub fn window(&self, block: u64) -> Option<Window> {
        let at = self.runs.partition_point(|run| run.end <= block);
        let run = self.runs.get(at)?;
        let count = run.extent.count();
        Some(Window {
            first: run.end - count,
            count,
            on_disk: run.extent.end() - count,
        })
    }

    /// The blocks of the disk that are blocks `first` and on of the area, in order. Nothing is allocated.
    pub fn translate(&self, first: u64, count: Blocks) -> Result<Pieces<'_>, OutOfArea> {
        let end = first.checked_add(count).ok_or(OutOfArea)?;
        if end > self.blocks() {
            return Err(OutOfArea);
        }
        let at = self.runs.partition_point(|run| run.end <= first);
        Ok(Pieces {
            runs: self.runs.get(at..).unwrap_or(&[]),
            first,
            left: count,
        })
    }
}

/// Blocks of an area that lie together on the disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Window {
    first: u64,
    count: Blocks,
    /// Where the first lies.
    on_disk: u64,
}

impl Window {
    /// Where on the disk blocks `first` and on of the area begin, if all of them lie here.
    #[inline]
    pub fn translate(&self, first: u64, count: Blocks) -> Option<u64> {
        let inside = first.wrapping_sub(self.first);
        let is_here = inside < self.count && count <= self.count - inside;
        is_here.then(|| self.on_disk + inside)
    }
}

/// The pieces of a range, each of which lies together on the disk.
#[derive(Clone, Debug)]
pub struct Pieces<'a> {
    runs: &'a [Run],
    first: u64,
    left: Blocks,
}

impl Iterator for Pieces<'_> {
    type Item = Extent;

    fn next(&mut self) -> Option<Extent> {
        let (run, rest) = self.runs.split_first()?;
        let behind = run.end - self.first;
        let count = behind.min(self.left);
        let piece = Extent::new(run.extent.end() - behind, count)?;
        self.runs = rest;
        self.first += count;
        self.left -= count;
        Some(piece)
    }
}
