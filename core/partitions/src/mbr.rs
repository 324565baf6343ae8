//! MBR: four entries in the first block, one of which may begin a chain of further ones.

use alloc::vec;
use alloc::vec::Vec;

use crate::{NUMBER_MAX, Partition, Purpose, Read, Shape, u16_at, u32_at};

const ENTRIES: usize = 446;
const ENTRY_BYTES: usize = 16;
const SIGNATURE_AT: usize = 510;
const SIGNATURE: u16 = 0xaa55;
/// "There is a GPT, hands off."
const PROTECTIVE: u8 = 0xee;
/// Types of an entry that begins a chain.
const EXTENDED: [u8; 3] = [0x05, 0x0f, 0x85];
/// The number of the first partition in the chain.
const LOGICAL: u8 = 5;
/// Links of a chain that are followed.
const LINKS_MAX: usize = 64;
/// Where file systems of the FAT family say so in a first block that looks like a table.
const FAT_AT: [usize; 2] = [0x36, 0x52];

#[derive(Clone, Copy)]
struct Entry {
    kind: u8,
    first: u64,
    count: u64,
}

pub(crate) struct Table([Option<Entry>; 4]);

impl Table {
    /// The table in a first block; `None` if there is none.
    pub(crate) fn parse(block: &[u8]) -> Option<Self> {
        let is_fat = |at: &usize| {
            block
                .get(*at..)
                .is_some_and(|rest| rest.starts_with(b"FAT"))
        };
        if u16_at(block, SIGNATURE_AT)? != SIGNATURE || FAT_AT.iter().any(is_fat) {
            return None;
        }
        let mut entries = [None; 4];
        for (index, place) in entries.iter_mut().enumerate() {
            let entry = block.get(ENTRIES + index * ENTRY_BYTES..)?;
            // Anything else is a boot loader without a table.
            if !matches!(entry.first()?, 0 | 0x80) {
                return None;
            }
            let (kind, first, count) = (*entry.get(4)?, u32_at(entry, 8)?, u32_at(entry, 12)?);
            *place = (kind != 0 && count != 0).then_some(Entry {
                kind,
                first: first.into(),
                count: count.into(),
            });
        }
        Some(Self(entries))
    }

    pub(crate) fn is_protective(&self) -> bool {
        self.0
            .iter()
            .flatten()
            .any(|entry| entry.kind == PROTECTIVE)
    }

    pub(crate) fn partitions(&self, shape: Shape, read: Read<'_>) -> Vec<Partition> {
        let mut found = Vec::new();
        for (number, entry) in (1..).zip(self.0) {
            found.extend(entry.and_then(|entry| entry.partition(shape, number, 0)));
        }
        let chain = self.0.iter().flatten().find(|entry| entry.is_chain());
        if let Some(chain) = chain {
            follow(shape, chain.first, read, &mut found);
        }
        found
    }
}

impl Entry {
    fn is_chain(&self) -> bool {
        EXTENDED.contains(&self.kind)
    }

    /// What it stands for, `base` blocks into the disk.
    fn partition(self, shape: Shape, number: u8, base: u64) -> Option<Partition> {
        let first = base.checked_add(self.first)?;
        let count = match self.is_chain() {
            // Only so much that a loader finds its code.
            true => self.count.min(2),
            false => self.count,
        };
        shape.has(first, count).then_some(Partition {
            number,
            first,
            count,
            purpose: Purpose::Mbr(self.kind),
        })
    }
}

/// Adds the partitions of the chain that begins at `start`: each link has a partition, which it
/// counts from itself, and the next link, which it counts from the start.
fn follow(shape: Shape, start: u64, read: Read<'_>, found: &mut Vec<Partition>) {
    let mut block = vec![0; shape.block_bytes as usize];
    let (mut link, mut number) = (start, LOGICAL);
    for _ in 0..LINKS_MAX {
        let Some(at) = shape.byte_of(link).filter(|_| number <= NUMBER_MAX) else {
            return;
        };
        if !read(at, &mut block) {
            return;
        }
        let Some(Table(entries)) = Table::parse(&block) else {
            return;
        };
        let [own, next, ..] = entries;
        if let Some(partition) = own
            .filter(|own| !own.is_chain())
            .and_then(|own| own.partition(shape, number, link))
        {
            found.push(partition);
            number += 1;
        }
        match next
            .filter(Entry::is_chain)
            .and_then(|next| start.checked_add(next.first))
        {
            Some(next) if next != link => link = next,
            _ => return,
        }
    }
}
