//! Partition tables: what GPT (UEFI 2.10, chapter 5) and MBR say of a disk.
//!
//! # Problem
//! A table is bytes of a disk that anybody may have written. It may name partitions beyond the
//! end, inside of each other's tables, a million of them, or a chain that comes back to itself.
//!
//! # Idea
//! Nothing is believed: numbers are checked, sums are taken with care, tables have the checksum that
//! they say, loops a bound. A partition that does not lie on the disk is left out. GPT's second
//! table, at the end of the disk, stands in for a first one that is damaged.
//!
//! The disk is a function that reads. Not here: other tables (BSD, Sun), writing any.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod crc;
mod gpt;
mod mbr;

use alloc::vec;
use alloc::vec::Vec;

/// The highest number of a partition that is told of.
pub const NUMBER_MAX: u8 = 15;

/// Fills the bytes from a byte of the disk on, which begin and end with blocks; false if it cannot.
pub type Read<'a> = &'a mut dyn FnMut(u64, &mut [u8]) -> bool;

/// A disk's shape.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    /// Bytes of a block, which tables count in.
    pub block_bytes: u32,
    /// Blocks in all.
    pub blocks: u64,
}

/// What a partition is for, as its table says it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Purpose {
    /// MBR's number.
    Mbr(u8),
    /// GPT's type and the partition's own name, as they are stored.
    Gpt {
        /// The type.
        kind: [u8; 16],
        /// The partition.
        id: [u8; 16],
    },
}

/// A part of a disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Partition {
    /// From 1 to [`NUMBER_MAX`].
    pub number: u8,
    /// Its first block.
    pub first: u64,
    /// How many it has, not 0.
    pub count: u64,
    /// What it is for.
    pub purpose: Purpose,
}

/// The partitions of a disk, by their numbers; none if it has no table that we know.
pub fn read(shape: Shape, read: Read<'_>) -> Vec<Partition> {
    let size = shape.block_bytes as usize;
    let is_possible = (512..=4096).contains(&size) && size.is_power_of_two() && shape.blocks != 0;
    if !is_possible {
        return Vec::new();
    }
    let mut first = vec![0; size];
    if !read(0, &mut first) {
        return Vec::new();
    }
    match mbr::Table::parse(&first) {
        None => Vec::new(),
        Some(table) if table.is_protective() => gpt::partitions(shape, read),
        Some(table) => table.partitions(shape, read),
    }
}

impl Shape {
    /// Where a block begins, if it is on the disk.
    fn byte_of(self, block: u64) -> Option<u64> {
        let is_there = block < self.blocks;
        is_there.then(|| block.checked_mul(self.block_bytes.into()))?
    }

    /// Whether the disk has all of these blocks, and there are some.
    fn has(self, first: u64, count: u64) -> bool {
        let end = first.checked_add(count);
        count != 0 && end.is_some_and(|end| end <= self.blocks)
    }
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    let field = bytes.get(at..)?.first_chunk()?;
    Some(u16::from_le_bytes(*field))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let field = bytes.get(at..)?.first_chunk()?;
    Some(u32::from_le_bytes(*field))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    let field = bytes.get(at..)?.first_chunk()?;
    Some(u64::from_le_bytes(*field))
}
