//! What a device takes in one command, and what it promises.

use crate::SECTOR_BYTES;
use crate::request::{Failure, SectorRange};

/// Where a completed write is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cache {
    /// On the medium.
    WriteThrough,
    /// In a cache that a loss of power empties; a flush brings it to the medium.
    WriteBack {
        /// A single write may be told to go to the medium at once (FUA).
        forces: bool,
    },
}

/// What a device takes of commands that carry no data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bulk {
    /// Sectors of one command; not zero.
    pub sectors_max: u32,
    /// It is useful for whole units of so many sectors.
    pub granularity: u32,
}

/// A device's shape.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Its size in sectors.
    pub sectors: u64,
    /// Bytes of the smallest unit that is read or written: a power of two from 512 to 4096.
    pub block_bytes: u32,
    /// Bytes of the unit that the medium really writes.
    pub physical_bytes: u32,
    /// How far into a physical unit the first block lies, in bytes.
    pub alignment_offset: u32,
    /// Bytes that are read or written well; 0 where the device does not say.
    pub optimal_bytes: u32,
    /// Pieces of memory in one command.
    pub segments_max: u16,
    /// Bytes of each of them.
    pub segment_bytes_max: u32,
    /// No piece lies on both sides of a multiple of this address, a power of two.
    pub segment_boundary: Option<u64>,
    /// Each piece begins and ends at a multiple of this address, a power of two.
    pub segment_align: u32,
    /// No gap between pieces: all but the first begin, and all but the last end, at a multiple of this
    /// address, a power of two (NVMe's lists of pages).
    pub page_bytes: Option<u32>,
    /// Bytes of one command.
    pub command_bytes_max: u32,
    /// No command lies on both sides of a multiple of so many sectors.
    pub chunk_sectors: Option<u32>,
    /// Nothing can be changed.
    pub is_read_only: bool,
    /// Where completed writes are.
    pub cache: Cache,
    /// What it takes of discards, if any.
    pub discard: Option<Bulk>,
    /// What it takes of zeroes, if any.
    pub zeroes: Option<Bulk>,
}

impl Limits {
    /// Of a device that says nothing about itself but its size.
    pub const fn plain(sectors: u64) -> Self {
        Self {
            sectors,
            block_bytes: 512,
            physical_bytes: 512,
            alignment_offset: 0,
            optimal_bytes: 0,
            segments_max: 1,
            segment_bytes_max: 4096,
            segment_boundary: None,
            segment_align: 1,
            page_bytes: None,
            command_bytes_max: 4096,
            chunk_sectors: None,
            is_read_only: false,
            cache: Cache::WriteBack { forces: false },
            discard: None,
            zeroes: None,
        }
    }

    /// What the device said, as far as anything can be made of it: a device that says nonsense
    /// gets small commands and no promise is believed. `None` if its blocks have an impossible size.
    pub fn checked(self) -> Option<Self> {
        let block = self.block_bytes;
        if !block.is_power_of_two() || !(512..=4096).contains(&block) {
            return None;
        }
        let bulk = |bulk: Option<Bulk>| {
            let per_block = block / SECTOR_BYTES as u32;
            bulk.map(|bulk| Bulk {
                sectors_max: bulk.sectors_max / per_block * per_block,
                granularity: bulk.granularity.max(per_block),
            })
            .filter(|bulk| bulk.sectors_max != 0)
        };
        let physical = match self.physical_bytes.is_power_of_two() {
            true => self.physical_bytes.max(block),
            false => block,
        };
        let chunk =
            |sectors: &u32| sectors.is_multiple_of(block / SECTOR_BYTES as u32) && *sectors != 0;
        let align = match self.segment_align.is_power_of_two() {
            true => self.segment_align.min(block),
            false => block,
        };
        let boundary = |at: &u64| at.is_power_of_two() && *at >= u64::from(block);
        Some(Self {
            sectors: self.sectors / sectors_of(block) * sectors_of(block),
            physical_bytes: physical,
            segments_max: self.segments_max.max(1),
            segment_bytes_max: (self.segment_bytes_max / block * block).max(block),
            segment_boundary: self.segment_boundary.filter(boundary),
            segment_align: align,
            page_bytes: self.page_bytes.filter(|bytes| bytes.is_power_of_two()),
            command_bytes_max: (self.command_bytes_max / block * block).max(block),
            chunk_sectors: self.chunk_sectors.filter(chunk),
            discard: bulk(self.discard),
            zeroes: bulk(self.zeroes),
            ..self
        })
    }

    /// Whether the device has all of `range`, which begins and ends with blocks.
    pub fn check_range(&self, range: SectorRange) -> Result<(), Failure> {
        let end = range.end().ok_or(Failure::OutOfRange)?;
        if end > self.sectors {
            return Err(Failure::OutOfRange);
        }
        match (range.first | range.count) & self.inside_block() == 0 {
            true => Ok(()),
            false => Err(Failure::Misaligned),
        }
    }

    /// The bits of a sector's number that say where in its block it is: a block has a power of two of them.
    pub(crate) fn inside_block(&self) -> u64 {
        sectors_of(self.block_bytes) - 1
    }

    /// Bytes that a write which wants to be good covers wholly.
    pub fn io_min(&self) -> u32 {
        self.physical_bytes
    }
}

fn sectors_of(bytes: u32) -> u64 {
    (u64::from(bytes) / SECTOR_BYTES).max(1)
}
