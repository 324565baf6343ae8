//! A domain's page table (9.3, "second-stage paging"): 512 entries a table, 9 bits of the
//! address a level, from the root down to pages of 4 KiB, or of 2 MiB one level above.
//!
//! A table that has become empty stays: the next mapping nearby wants it again, and a unit
//! may be reading it. So the tables of a domain take 1/512 of all memory at most that it ever
//! mapped, or a page for each 2 MiB in which it mapped anything.

use alloc::vec::Vec;

use hal::{DmaError, DmaSource};

use crate::table::Table;

const PAGE_BYTES: u64 = 4096;
const LARGE_BYTES: u64 = 2 << 20;
const INDEX_BITS: u32 = 9;

const READ_WRITE: u64 = 0b11;
const IS_LARGE: u64 = 1 << 7;

/// Whole pages that a device sees at one address, and that lie at another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pages {
    /// The device's address of the first byte.
    pub device: u64,
    /// Its physical address.
    pub physical: u64,
    /// How many bytes.
    pub bytes: u64,
}

impl Pages {
    /// Memory that the device sees where it lies.
    pub const fn identical(start: u64, bytes: u64) -> Self {
        Self {
            device: start,
            physical: start,
            bytes,
        }
    }

    fn skip(self, bytes: u64) -> Self {
        Self {
            device: self.device + bytes,
            physical: self.physical + bytes,
            bytes: self.bytes - bytes,
        }
    }
}

/// Why a table was not changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MapError {
    /// Not whole pages, none, or beyond what the table or its entries can name.
    Range,
    /// Something is mapped there.
    Occupied {
        /// The first such address.
        device: u64,
    },
    /// Nothing is mapped there.
    NotMapped {
        /// The first such address.
        device: u64,
    },
    /// A part of a large page, which is only taken away as a whole.
    PartOfLargePage,
    /// No memory for a table.
    Memory(DmaError),
}

/// A page table with its tables below.
struct Node {
    table: Table,
    /// By index, ascending.
    below: Vec<(usize, Node)>,
}

/// The page table of a domain.
pub(crate) struct SecondLevel {
    root: Node,
    levels: u8,
    has_large_pages: bool,
}

impl SecondLevel {
    pub(crate) fn new(
        source: &impl DmaSource,
        levels: u8,
        has_large_pages: bool,
    ) -> Result<Self, DmaError> {
        Ok(Self {
            root: Node::new(source)?,
            levels,
            has_large_pages,
        })
    }

    /// Where the unit finds it.
    pub(crate) fn address(&self) -> u64 {
        self.root.table.address()
    }

    /// Maps pages, all or none, for reading and writing.
    pub(crate) fn map(&mut self, source: &impl DmaSource, pages: Pages) -> Result<(), MapError> {
        self.check(pages.device, pages.bytes)?;
        self.check(pages.physical, pages.bytes)?;
        let mut done = 0;
        while done < pages.bytes {
            match self.map_one(source, pages.skip(done)) {
                Ok(bytes) => done += bytes,
                Err(error) => {
                    self.clear(pages.device, done);
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Unmaps `bytes` bytes from `device` on, all or none. The unit may remember them.
    pub(crate) fn unmap(&mut self, device: u64, bytes: u64) -> Result<(), MapError> {
        self.check(device, bytes)?;
        let mut done = 0;
        while done < bytes {
            let at = device + done;
            let (_, _, page) = self.leaf(at).ok_or(MapError::NotMapped { device: at })?;
            if !at.is_multiple_of(page) || page > bytes - done {
                return Err(MapError::PartOfLargePage);
            }
            done += page;
        }
        self.clear(device, bytes);
        Ok(())
    }

    /// Takes out what is mapped in a range that holds whole pages only.
    fn clear(&mut self, device: u64, bytes: u64) {
        let mut done = 0;
        while done < bytes {
            let Some((table, index, page)) = self.leaf(device + done) else {
                return;
            };
            table.set(index, 0);
            done += page;
        }
    }

    fn check(&self, start: u64, bytes: u64) -> Result<(), MapError> {
        let are_pages = (start | bytes).is_multiple_of(PAGE_BYTES) && bytes != 0;
        let end = start.checked_add(bytes);
        let limit = 1 << (12 + INDEX_BITS * u32::from(self.levels));
        match are_pages && end.is_some_and(|end| end <= limit) {
            true => Ok(()),
            false => Err(MapError::Range),
        }
    }

    /// Maps the first page, the largest that fits; returns its bytes.
    fn map_one(&mut self, source: &impl DmaSource, pages: Pages) -> Result<u64, MapError> {
        let Pages {
            device, physical, ..
        } = pages;
        let is_aligned = (device | physical).is_multiple_of(LARGE_BYTES);
        let may_be_large = self.has_large_pages && is_aligned && pages.bytes >= LARGE_BYTES;
        let occupied = MapError::Occupied { device };
        let mut node = &mut self.root;
        for level in (2..=self.levels).rev() {
            let index = index(device, level);
            match Entry::of(node.table.word(index), level) {
                Entry::Page => return Err(occupied),
                Entry::Absent if level == 2 && may_be_large => {
                    node.table.set(index, physical | READ_WRITE | IS_LARGE);
                    return Ok(LARGE_BYTES);
                }
                Entry::Absent | Entry::Table => {}
            }
            node = node.below(source, index).map_err(MapError::Memory)?;
        }
        let index = index(device, 1);
        if node.table.word(index) != 0 {
            return Err(occupied);
        }
        node.table.set(index, physical | READ_WRITE);
        Ok(PAGE_BYTES)
    }

    /// The entry that maps `device`: its table, its index, and the bytes of its page.
    fn leaf(&self, device: u64) -> Option<(&Table, usize, u64)> {
        let mut node = &self.root;
        for level in (2..=self.levels).rev() {
            let index = index(device, level);
            match Entry::of(node.table.word(index), level) {
                Entry::Absent => return None,
                Entry::Page => return Some((&node.table, index, LARGE_BYTES)),
                Entry::Table => node = node.find(index)?,
            }
        }
        let index = index(device, 1);
        (node.table.word(index) != 0).then_some((&node.table, index, PAGE_BYTES))
    }
}

/// The index in a table of `level`, of which the lowest is 1.
fn index(device: u64, level: u8) -> usize {
    let shift = 12 + INDEX_BITS * u32::from(level - 1);
    (device >> shift) as usize & ((1 << INDEX_BITS) - 1)
}

/// What an entry above the lowest level is.
enum Entry {
    Absent,
    Table,
    Page,
}

impl Entry {
    fn of(word: u64, level: u8) -> Self {
        match (word, level) {
            (0, _) => Self::Absent,
            (word, 2) if word & IS_LARGE != 0 => Self::Page,
            _ => Self::Table,
        }
    }
}

impl Node {
    fn new(source: &impl DmaSource) -> Result<Self, DmaError> {
        Ok(Self {
            table: Table::new(source)?,
            below: Vec::new(),
        })
    }

    fn find(&self, index: usize) -> Option<&Node> {
        let at = self
            .below
            .binary_search_by_key(&index, |(at, _)| *at)
            .ok()?;
        self.below.get(at).map(|(_, node)| node)
    }

    /// The table below entry `index`, new if there is none.
    fn below(&mut self, source: &impl DmaSource, index: usize) -> Result<&mut Node, DmaError> {
        let at = match self.below.binary_search_by_key(&index, |(at, _)| *at) {
            Ok(at) => at,
            Err(at) => {
                let bytes = size_of::<(usize, Node)>();
                let has_room = self.below.try_reserve(1);
                has_room.map_err(|_| DmaError::OutOfMemory { bytes })?;
                let node = Node::new(source)?;
                self.table.set(index, node.table.address() | READ_WRITE);
                self.below.insert(at, (index, node));
                at
            }
        };
        // tidy: found or inserted there just now.
        Ok(&mut self.below[at].1)
    }
}
