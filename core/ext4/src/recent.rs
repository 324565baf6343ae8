//! Where a file was looked at last: files are read and written in order, and the next block is
//! mostly in the same extent.

use alloc::collections::BTreeMap;

use crate::layout::extent::Extent;

/// Inodes whose last extent is remembered.
const RECENT_MAX: usize = 256;

/// The last extent that was found for each of some inodes.
#[derive(Debug, Default)]
pub(crate) struct Recent(BTreeMap<u32, Extent>);

impl Recent {
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    pub(crate) fn forget(&mut self, inode: u32) {
        self.0.remove(&inode);
    }

    pub(crate) fn get(&self, inode: u32, logical: u32) -> Option<Extent> {
        let extent = self.0.get(&inode)?;
        let is_inside = extent.logical <= logical && u64::from(logical) < extent.end();
        is_inside.then(|| extent.from(logical))
    }

    pub(crate) fn put(&mut self, inode: u32, extent: Extent) {
        if self.0.len() >= RECENT_MAX {
            self.0.clear();
        }
        self.0.insert(inode, extent);
    }
}
