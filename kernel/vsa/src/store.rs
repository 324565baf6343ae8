//! A disk or partition as its catalogue sees it.

use kernel_block::{Durability, Store};
use vsa::{Blocks, Disk, DiskError, Extent};

/// Lent for each call.
pub struct StoreDisk<'a>(pub &'a Store);

impl StoreDisk<'_> {
    fn at(&self, block: u64) -> Result<u64, DiskError> {
        block.checked_mul(self.0.sector_bytes()).ok_or(DiskError)
    }
}

impl Disk for StoreDisk<'_> {
    fn block_bytes(&self) -> u32 {
        self.0.sector_bytes() as u32
    }

    fn blocks(&self) -> Blocks {
        self.0.bytes() / self.0.sector_bytes()
    }

    fn read(&mut self, first: u64, into: &mut [u8]) -> Result<(), DiskError> {
        let at = self.at(first)?;
        self.0.read(at, into).map_err(|_| DiskError)
    }

    fn write(&mut self, first: u64, from: &[u8]) -> Result<(), DiskError> {
        let at = self.at(first)?;
        let written = self.0.write(at, &[from], Durability::Volatile);
        written.map_err(|_| DiskError)
    }

    fn zero(&mut self, blocks: Extent) -> Result<(), DiskError> {
        let (at, end) = (self.at(blocks.first())?, self.at(blocks.end())?);
        self.0.zero(at, end - at).map_err(|_| DiskError)
    }

    fn flush(&mut self) -> Result<(), DiskError> {
        self.0.flush().map_err(|_| DiskError)
    }
}
