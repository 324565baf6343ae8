//! Pages of a file system's to and from its disk, without a copy where the device reaches them.

use block::{Durability, Operation, SECTOR_BYTES};
use sync::{Error, Result};

use crate::store::Store;
use crate::transfer::{Segment, bytes_of};
use crate::urgent::move_surely;

/// Pages of one request.
const REQUEST_PAGES: usize = 256;

impl Store {
    /// Fills parts of pages, one after the other, from `offset` on.
    ///
    /// Errors: `Invalid` if these are no whole blocks of the disk.
    pub fn read_pages(&self, offset: u64, into: &[Segment]) -> Result<()> {
        self.move_pages(Operation::Read, offset, into)
    }

    /// Stores parts of pages, one after the other, from `offset` on. What somebody stores to them
    /// meanwhile may be among it.
    ///
    /// Errors: `Invalid` if these are no whole blocks of the disk.
    pub fn write_pages(&self, offset: u64, from: &[Segment], durability: Durability) -> Result<()> {
        self.move_pages(Operation::Write(durability), offset, from)
    }

    fn move_pages(&self, operation: Operation, offset: u64, pages: &[Segment]) -> Result<()> {
        let block = u64::from(self.disk.limits().block_bytes);
        let mut at = self.check(offset, bytes_of(pages))?;
        for part in pages.chunks(REQUEST_PAGES) {
            let bytes = bytes_of(part) as u64;
            if !at.is_multiple_of(block) || !bytes.is_multiple_of(block) {
                return Err(Error::Invalid);
            }
            move_surely(&self.disk, operation, at / SECTOR_BYTES, part)?;
            at += bytes;
        }
        Ok(())
    }
}
