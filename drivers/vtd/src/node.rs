//! A table of a domain's page table with the tables below it.

use alloc::vec::Vec;

use hal::{DmaError, DmaSource};

use crate::table::Table;

pub(crate) const INDEX_BITS: u32 = 9;
/// Entries of a table.
const ENTRIES: usize = 1 << INDEX_BITS;
pub(crate) const READ_WRITE: u64 = 0b11;
/// Of an entry above the lowest level: a page, and no table.
pub(crate) const IS_LARGE: u64 = 1 << 7;

/// A page table with its tables below.
pub(crate) struct Node {
    pub(crate) table: Table,
    /// Entries that are not 0.
    used: usize,
    /// By index, ascending.
    below: Vec<(usize, Node)>,
}

/// The index in a table of `level`, of which the lowest is 1.
pub(crate) fn index(device: u64, level: u8) -> usize {
    let shift = 12 + INDEX_BITS * u32::from(level - 1);
    (device >> shift) as usize & (ENTRIES - 1)
}

/// What an entry is.
pub(crate) enum Entry {
    Absent,
    Table,
    Page,
}

impl Entry {
    pub(crate) fn of(word: u64, level: u8) -> Self {
        match (word, level) {
            (0, _) => Self::Absent,
            (_, 1) => Self::Page,
            (word, 2) if word & IS_LARGE != 0 => Self::Page,
            _ => Self::Table,
        }
    }
}

impl Node {
    pub(crate) fn new(source: &impl DmaSource) -> Result<Self, DmaError> {
        Ok(Self {
            table: Table::new(source)?,
            used: 0,
            below: Vec::new(),
        })
    }

    /// Sets an entry that was 0.
    pub(crate) fn set(&mut self, index: usize, word: u64) {
        self.table.set(index, word);
        self.used += 1;
    }

    /// Takes out the pages from `first` to `last`, both inside of what this table of `level`
    /// maps, and the tables that are empty then.
    pub(crate) fn clear(&mut self, level: u8, first: u64, last: u64, retired: &mut Vec<Node>) {
        let (from, to) = (index(first, level), index(last, level));
        for at in from..=to {
            let is_out = match Entry::of(self.table.word(at), level) {
                Entry::Absent => false,
                Entry::Page => true,
                Entry::Table => {
                    // Within the entries between the first and the last, all of it.
                    let first = if at == from { first } else { 0 };
                    let last = if at == to { last } else { u64::MAX };
                    self.clear_below(at, level - 1, (first, last), retired)
                }
            };
            if is_out {
                self.table.set(at, 0);
                self.used -= 1;
            }
        }
    }

    /// The same in the table below an entry; whether that was empty then and is retired.
    fn clear_below(
        &mut self,
        index: usize,
        level: u8,
        (first, last): (u64, u64),
        retired: &mut Vec<Node>,
    ) -> bool {
        let Ok(at) = self.place(index) else {
            return false;
        };
        // tidy: found there just now.
        let node = &mut self.below[at].1;
        node.clear(level, first, last, retired);
        // Where there is no memory for the list, an empty table stays.
        let is_out = node.used == 0 && retired.try_reserve(1).is_ok();
        if is_out {
            retired.push(self.below.remove(at).1);
        }
        is_out
    }

    /// Where the table below entry `index` is, or would be.
    fn place(&self, index: usize) -> Result<usize, usize> {
        self.below.binary_search_by_key(&index, |(at, _)| *at)
    }

    pub(crate) fn find(&self, index: usize) -> Option<&Node> {
        let at = self.place(index).ok()?;
        self.below.get(at).map(|(_, node)| node)
    }

    /// The table below entry `index`, new and counted if there is none.
    pub(crate) fn below(
        &mut self,
        source: &impl DmaSource,
        index: usize,
        count: &mut usize,
    ) -> Result<&mut Node, DmaError> {
        let at = match self.place(index) {
            Ok(at) => at,
            Err(at) => {
                let bytes = size_of::<(usize, Node)>();
                let has_room = self.below.try_reserve(1);
                has_room.map_err(|_| DmaError::OutOfMemory { bytes })?;
                let node = Node::new(source)?;
                self.set(index, node.table.address() | READ_WRITE);
                self.below.insert(at, (index, node));
                *count += 1;
                at
            }
        };
        // tidy: found or inserted there just now.
        Ok(&mut self.below[at].1)
    }
}
