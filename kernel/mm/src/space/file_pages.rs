//! Other pages of the same file in a part of its mapping: remap_file_pages(2).
//!
//! As Linux since 4.0 we make an ordinary mapping of that part.

use base::{PAGE_BYTES, VirtAddr};
use sync::{Error, Result};

use super::AddressSpace;
use super::map::{Mapping, Place};

const PAGE: u64 = PAGE_BYTES as u64;

impl AddressSpace {
    /// Shows at `start` the pages of the file that is mapped there shared, from page `page` on.
    ///
    /// Errors: `Invalid` where no file is mapped shared, or not all of it in one piece; as `map`.
    pub fn show_file_pages(&self, start: VirtAddr, bytes: u64, page: u64) -> Result<()> {
        let end = start.checked_add(bytes).ok_or(Error::Invalid)?;
        let offset = page.checked_mul(PAGE).ok_or(Error::Invalid)?;
        let mapping = {
            let state = self.lock_settled();
            let area = state.areas.find(start).filter(|area| area.end >= end);
            let area = area.ok_or(Error::Invalid)?;
            let shown = area.backing.as_ref().filter(|_| area.traits.shared);
            let object = shown.ok_or(Error::Invalid)?.object.clone();
            Mapping {
                place: Place::Fixed(start),
                bytes,
                access: area.access,
                limit: area.limit,
                traits: area.traits,
                object: Some((object, offset)),
                populate: true,
            }
        };
        self.map(mapping).map(drop)
    }
}
