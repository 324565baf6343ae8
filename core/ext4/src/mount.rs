//! Mounting: superblock, journal, orphans.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::vec;

use crate::device::Device;
use crate::error::{Corrupt, MountError, Result};
use crate::freed::Freed;
use crate::journal::{Log, recovery};
use crate::layout::features::{COMPAT_HAS_JOURNAL, INCOMPAT_64BIT, INCOMPAT_RECOVER};
use crate::layout::superblock::{self, Geometry, Totals};
use crate::recent::Recent;
use crate::seal::Seal;
use crate::store::Store;
use crate::volume::Volume;

/// What a mount is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// Reading only. A journal that is not empty is replayed nonetheless, if the disk can be written.
    Read,
    /// Changes, too.
    ReadWrite,
}

/// What a mount found.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Found {
    /// Transactions that were replayed.
    pub transactions: u32,
    /// Inodes that nobody named any more, or that had to be shortened.
    pub orphans: u32,
    /// The image says that errors were found in it: e2fsck should look at it.
    pub has_errors: bool,
}

impl Volume {
    /// Mounts the image on `device`.
    pub fn mount(mut device: Box<dyn Device>, access: Access) -> Result<(Self, Found), MountError> {
        let mut found = Found::default();
        let (geometry, is_sealed) = read_geometry(device.as_mut())?;
        let can_write = access == Access::ReadWrite && !device.is_read_only();
        if can_write {
            geometry.features.check_writable()?;
        }
        let mut volume = Self::open(device, geometry);
        let log = volume.open_log()?;
        if let Some(mut log) = log {
            found.transactions = volume.recover(&mut log, is_sealed)?;
            volume.log = Some(log);
        }
        volume.read_totals()?;
        volume.geometry = volume.read_geometry_again()?;
        found.has_errors = volume.totals.has_errors;
        volume.count_free()?;
        if can_write {
            found.orphans = volume.begin_writing()?;
        }
        volume.promises.set_free(volume.totals.free_blocks);
        Ok((volume, found))
    }

    fn open(device: Box<dyn Device>, geometry: Geometry) -> Self {
        let store = Store::new(device, &geometry);
        Self {
            geometry,
            totals: Totals::default(),
            store,
            log: None,
            is_writable: false,
            failure: None,
            freed: Freed::default(),
            recent: Recent::default(),
            changed: BTreeSet::new(),
            resized: BTreeSet::new(),
            writes: 0,
            flushed: 0,
            committed: 0,
            under_way: None,
            promises: Default::default(),
            spends_promises: false,
            overhead: 0,
        }
    }

    fn open_log(&mut self) -> Result<Option<Log>, MountError> {
        if !self.geometry.features.has_compat(COMPAT_HAS_JOURNAL) {
            return Ok(None);
        }
        let inode = self.inode_of(self.geometry.journal_inode)?;
        let map = self.extents(&inode)?;
        Ok(Some(Log::open(
            &mut self.store,
            map,
            self.geometry.block_bytes,
        )?))
    }

    /// Replays the log, and forgets what was read before.
    fn recover(&mut self, log: &mut Log, is_sealed: bool) -> Result<u32, MountError> {
        let says_so = self.geometry.features.has_incompat(INCOMPAT_RECOVER);
        if !log.is_dirty() || (is_sealed && !says_so) {
            return Ok(0);
        }
        if self.store.device.is_read_only() {
            return Err(MountError::NeedsRecovery);
        }
        let transactions = recovery::replay(log, &mut self.store)?;
        self.store.forget_all();
        self.recent.clear();
        Ok(transactions)
    }

    fn read_totals(&mut self) -> Result<()> {
        let (block, at) = self.geometry.superblock_place();
        let bytes = self.store.load(block, Seal::Superblock, &self.geometry)?;
        self.totals = Totals::parse(bytes.get(at..).unwrap_or(&[]));
        Ok(())
    }

    /// The log may have had another superblock.
    fn read_geometry_again(&mut self) -> Result<Geometry, MountError> {
        let (block, at) = self.geometry.superblock_place();
        let bytes = self.store.load(block, Seal::Superblock, &self.geometry)?;
        let sb = bytes
            .get(at..at + superblock::BYTES)
            .ok_or(Corrupt::Superblock)?;
        let again = Geometry::parse(sb, self.store.device.bytes(), self.geometry.sums_begin)?;
        let is_same = again.block_bytes == self.geometry.block_bytes
            && again.blocks == self.geometry.blocks
            && again.inodes_per_group == self.geometry.inodes_per_group
            && again.descriptor_bytes == self.geometry.descriptor_bytes;
        match is_same && again.is_sealed(sb) {
            true => Ok(again),
            false => Err(Corrupt::Superblock.into()),
        }
    }

    /// The descriptors know better than the superblock what is free.
    fn count_free(&mut self) -> Result<()> {
        let (mut blocks, mut inodes, mut overhead) = (0, 0, self.geometry.first_data_block);
        for number in 0..self.geometry.groups {
            let group = self.group(number)?;
            blocks += u64::from(group.free_blocks);
            inodes += group.free_inodes;
            overhead += self.geometry.inode_table_blocks() + 2 + self.backup_blocks(number);
        }
        self.totals.free_blocks = blocks;
        self.totals.free_inodes = inodes;
        self.overhead = overhead.min(self.geometry.blocks);
        Ok(())
    }

    fn begin_writing(&mut self) -> Result<u32, MountError> {
        let has_sums = self.geometry.features.has_checksums();
        let is_64bit = self.geometry.features.has_incompat(INCOMPAT_64BIT);
        if let Some(log) = &mut self.log {
            log.start(&mut self.store, has_sums, is_64bit)?;
        }
        self.is_writable = true;
        self.totals.is_clean = false;
        self.transact(1, |volume| {
            let (block, _) = volume.geometry.superblock_place();
            volume
                .store
                .modify(block, Seal::Superblock, &volume.geometry)
                .map(drop)
        })?;
        self.checkpoint()?;
        if planted::is("orphans stay after a mount") {
            return Ok(0);
        }
        Ok(self.clean_orphans()?)
    }
}

/// The shape of the image, and whether the superblock's checksum is right.
fn read_geometry(device: &mut dyn Device) -> Result<(Geometry, bool), MountError> {
    if device.bytes() < superblock::OFFSET + superblock::BYTES as u64 {
        return Err(MountError::NotExt4);
    }
    let mut sb = vec![0; superblock::BYTES];
    device.read(superblock::OFFSET, &mut sb)?;
    let geometry = Geometry::parse(&sb, device.bytes(), device.sums_begin())?;
    let is_sealed = geometry.is_sealed(&sb);
    Ok((geometry, is_sealed))
}
