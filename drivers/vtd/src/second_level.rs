//! A domain's page table (9.3, "second-stage paging"): 512 entries a table, 9 bits of the
//! address a level, from the root down to pages of 4 KiB, or of 2 MiB one level above.
//!
//! A table that has become empty is taken out at once, but a unit may still be reading it: it is
//! *retired*, and freed when the unit has said that it forgot the domain
//! ([`SecondLevel::release`]). So tables take no more than what is mapped needs: a page for each
//! 2 MiB, each GiB and each 512 GiB in which anything is mapped.

use alloc::vec::Vec;

use hal::{DmaError, DmaSource};

use crate::node::{Entry, INDEX_BITS, IS_LARGE, Node, index};
use crate::pages::{MapError, Pages};

const PAGE_BYTES: u64 = 4096;
const LARGE_BYTES: u64 = 2 << 20;

/// The page table of a domain.
pub(crate) struct SecondLevel {
    root: Node,
    levels: u8,
    has_large_pages: bool,
    /// Tables below the root.
    tables: usize,
    /// Taken out, and perhaps still read by the unit.
    retired: Vec<Node>,
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
            tables: 0,
            retired: Vec::new(),
        })
    }

    /// The first address that the table cannot name.
    pub(crate) fn limit(&self) -> u64 {
        1 << (12 + INDEX_BITS * u32::from(self.levels))
    }

    /// How many tables there are below the root.
    pub(crate) fn count(&self) -> usize {
        self.tables
    }

    /// Frees what was taken out. The unit has forgotten the domain.
    pub(crate) fn release(&mut self) {
        let retired = self.retired.drain(..);
        retired.for_each(|node| node.table.retire());
    }

    /// Where the unit finds it.
    pub(crate) fn address(&self) -> u64 {
        self.root.table.address()
    }

    /// Maps pages, all or none.
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
            let page = self.leaf(at).ok_or(MapError::NotMapped { device: at })?;
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
        if bytes != 0 {
            let last = device + bytes - 1;
            let before = self.retired.len();
            self.root
                .clear(self.levels, device, last, &mut self.retired);
            self.tables -= self.retired.len() - before;
        }
    }

    /// Takes out what is mapped in a range. The unit may remember it.
    pub(crate) fn clear_range(&mut self, device: u64, bytes: u64) -> Result<(), MapError> {
        self.check(device, bytes)?;
        self.clear(device, bytes);
        Ok(())
    }

    fn check(&self, start: u64, bytes: u64) -> Result<(), MapError> {
        let are_pages = (start | bytes).is_multiple_of(PAGE_BYTES) && bytes != 0;
        let end = start.checked_add(bytes);
        match are_pages && end.is_some_and(|end| end <= self.limit()) {
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
                    node.set(index, physical | pages.rights as u64 | IS_LARGE);
                    return Ok(LARGE_BYTES);
                }
                Entry::Absent | Entry::Table => {}
            }
            let below = node.below(source, index, &mut self.tables);
            node = below.map_err(MapError::Memory)?;
        }
        let index = index(device, 1);
        if node.table.word(index) != 0 {
            return Err(occupied);
        }
        node.set(index, physical | pages.rights as u64);
        Ok(PAGE_BYTES)
    }

    /// The bytes of the page that maps `device`.
    fn leaf(&self, device: u64) -> Option<u64> {
        let mut node = &self.root;
        for level in (2..=self.levels).rev() {
            let index = index(device, level);
            match Entry::of(node.table.word(index), level) {
                Entry::Absent => return None,
                Entry::Page => return Some(LARGE_BYTES),
                Entry::Table => node = node.find(index)?,
            }
        }
        let word = node.table.word(index(device, 1));
        (word != 0).then_some(PAGE_BYTES)
    }
}
