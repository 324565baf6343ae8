//! GPT: a header in block 1, or in the last one, and a table that it leads to.

use alloc::vec;
use alloc::vec::Vec;

use crate::crc::crc32;
use crate::{NUMBER_MAX, Partition, Purpose, Read, Shape, u32_at, u64_at};

const SIGNATURE: u64 = u64::from_le_bytes(*b"EFI PART");
/// Where the checksum of a header stands, which counts as zeroes.
const CRC: core::ops::Range<usize> = 16..20;
const HEADER_BYTES: usize = 92;
const ENTRY_BYTES: usize = 128;
/// A table that is longer is nobody's: 128 entries take 16 KiB.
const TABLE_BYTES_MAX: usize = 256 << 10;

struct Header {
    table: u64,
    entries: usize,
    entry_bytes: usize,
    table_crc: u32,
}

/// The partitions of the first table that is whole.
pub(crate) fn partitions(shape: Shape, read: Read<'_>) -> Vec<Partition> {
    let mut places = [1, shape.blocks - 1].into_iter();
    let found = places.find_map(|block| {
        let header = Header::at(shape, block, read)?;
        let table = header.read_table(shape, read)?;
        Some(header.partitions(shape, &table))
    });
    found.unwrap_or_default()
}

impl Header {
    fn at(shape: Shape, block: u64, read: Read<'_>) -> Option<Self> {
        let mut bytes = vec![0; shape.block_bytes as usize];
        if !read(shape.byte_of(block)?, &mut bytes) || u64_at(&bytes, 0)? != SIGNATURE {
            return None;
        }
        let len = u32_at(&bytes, 12)? as usize;
        let header = bytes.get(..len).filter(|_| len >= HEADER_BYTES)?;
        let without = |(at, byte): (usize, &u8)| if CRC.contains(&at) { 0 } else { *byte };
        let is_whole = crc32(header.iter().enumerate().map(without)) == u32_at(header, CRC.start)?;
        if !is_whole || u64_at(header, 24)? != block {
            return None;
        }
        Some(Self {
            table: u64_at(header, 72)?,
            entries: u32_at(header, 80)? as usize,
            entry_bytes: u32_at(header, 84)? as usize,
            table_crc: u32_at(header, 88)?,
        })
    }

    fn read_table(&self, shape: Shape, read: Read<'_>) -> Option<Vec<u8>> {
        let bytes = self.entries.checked_mul(self.entry_bytes)?;
        let is_sane = self.entry_bytes >= ENTRY_BYTES && self.entry_bytes.is_multiple_of(8);
        if !is_sane || bytes == 0 || bytes > TABLE_BYTES_MAX {
            return None;
        }
        let whole = bytes.next_multiple_of(shape.block_bytes as usize);
        let blocks = whole as u64 / u64::from(shape.block_bytes);
        if !shape.has(self.table, blocks) {
            return None;
        }
        let mut table = vec![0; whole];
        if !read(shape.byte_of(self.table)?, &mut table) {
            return None;
        }
        table.truncate(bytes);
        (crc32(table.iter().copied()) == self.table_crc).then_some(table)
    }

    fn partitions(&self, shape: Shape, table: &[u8]) -> Vec<Partition> {
        let entries = table.chunks_exact(self.entry_bytes).zip(1..=NUMBER_MAX);
        let partitions = entries.filter_map(|(entry, number)| partition(number, entry));
        partitions
            .filter(|partition| shape.has(partition.first, partition.count))
            .collect()
    }
}

/// The partition of an entry that is in use.
fn partition(number: u8, entry: &[u8]) -> Option<Partition> {
    let kind: [u8; 16] = *entry.first_chunk()?;
    let id: [u8; 16] = *entry.get(16..)?.first_chunk()?;
    let (first, last) = (u64_at(entry, 32)?, u64_at(entry, 40)?);
    if kind == [0; 16] {
        return None;
    }
    Some(Partition {
        number,
        first,
        count: last.checked_sub(first)?.checked_add(1)?,
        purpose: Purpose::Gpt { kind, id },
    })
}
