//! A disk in memory: a cache that a loss of power undoes sector by sector, and faults on order.

use std::collections::BTreeMap;
use std::vec;
use std::vec::Vec;

use models::Random;

use crate::{Blocks, Disk, DiskError, Extent};

const SECTOR: usize = 512;

/// What is on it, and what becomes of it.
#[derive(Clone)]
pub struct SimDisk {
    pub block_bytes: u32,
    /// What reads see.
    pub bytes: Vec<u8>,
    medium: Vec<u8>,
    /// Of each sector that was written since the last flush, all versions.
    cache: BTreeMap<usize, Vec<[u8; SECTOR]>>,
    /// Writes and flushes so far.
    pub events: usize,
    /// Bytes that were read so far.
    pub read_bytes: usize,
    /// After so many nothing works any more.
    pub off_at: Option<usize>,
    /// This one fails.
    pub fails_at: Option<usize>,
    random: Random,
}

impl SimDisk {
    /// Of zeroes, or of what others left.
    pub fn new(block_bytes: u32, blocks: usize, fill: u8) -> Self {
        let bytes = vec![fill; block_bytes as usize * blocks];
        Self {
            block_bytes,
            medium: bytes.clone(),
            bytes,
            cache: BTreeMap::new(),
            events: 0,
            read_bytes: 0,
            off_at: None,
            fails_at: None,
            random: Random::new(7),
        }
    }

    /// It has another size from now on.
    pub fn resize(&mut self, blocks: usize) {
        self.bytes.resize(blocks * self.block_bytes as usize, 0);
        self.medium = self.bytes.clone();
    }

    pub fn is_off(&self) -> bool {
        self.off_at.is_some_and(|at| self.events > at)
    }

    /// What a loss of power leaves, on a disk that works again.
    pub fn after_loss(&self, random: &mut Random) -> Self {
        let mut after = self.clone();
        for (sector, versions) in &self.cache {
            let survivor = random.below(versions.len() + 1);
            if let Some(version) = survivor.checked_sub(1).and_then(|at| versions.get(at)) {
                after.medium[sector * SECTOR..][..SECTOR].copy_from_slice(version);
            }
        }
        after.bytes = after.medium.clone();
        after.cache.clear();
        (after.off_at, after.fails_at, after.events) = (None, None, 0);
        after
    }

    /// Whether this event is the one that fails, or nothing works any more.
    fn event(&mut self) -> (bool, bool) {
        let at = self.events;
        self.events += 1;
        (self.fails_at == Some(at), self.is_off())
    }

    fn store(&mut self, at: usize, part: &[u8]) {
        self.bytes[at..at + SECTOR].copy_from_slice(part);
        let version = part.try_into().expect("a sector");
        self.cache.entry(at / SECTOR).or_default().push(version);
    }
}

impl Disk for SimDisk {
    fn block_bytes(&self) -> u32 {
        self.block_bytes
    }

    fn blocks(&self) -> Blocks {
        (self.bytes.len() / self.block_bytes as usize) as u64
    }

    fn read(&mut self, first: u64, into: &mut [u8]) -> Result<(), DiskError> {
        assert!(into.len().is_multiple_of(self.block_bytes as usize));
        let at = first as usize * self.block_bytes as usize;
        self.read_bytes += into.len();
        into.copy_from_slice(self.bytes.get(at..at + into.len()).ok_or(DiskError)?);
        Ok(())
    }

    fn write(&mut self, first: u64, from: &[u8]) -> Result<(), DiskError> {
        assert!(from.len().is_multiple_of(self.block_bytes as usize));
        let at = first as usize * self.block_bytes as usize;
        assert!(at + from.len() <= self.bytes.len(), "beyond the end");
        let (fails, is_off) = self.event();
        if is_off && self.off_at != Some(self.events - 1) {
            return Err(DiskError);
        }
        // What fails or is cut short may have written a part.
        for (index, part) in from.chunks(SECTOR).enumerate() {
            if !(fails || is_off) || self.random.once_in(2) {
                self.store(at + index * SECTOR, part);
            }
        }
        match fails || is_off {
            true => Err(DiskError),
            false => Ok(()),
        }
    }

    fn zero(&mut self, blocks: Extent) -> Result<(), DiskError> {
        let bytes = blocks.count() as usize * self.block_bytes as usize;
        self.write(blocks.first(), &vec![0; bytes])
    }

    fn flush(&mut self) -> Result<(), DiskError> {
        let (fails, is_off) = self.event();
        if is_off {
            return Err(DiskError);
        }
        if fails {
            // It forgets what it could not write, and says so once.
            let mut random = self.random.clone();
            let after = self.after_loss(&mut random);
            self.random = random;
            self.medium = after.medium;
            self.bytes = after.bytes;
            self.cache.clear();
            return Err(DiskError);
        }
        self.medium.copy_from_slice(&self.bytes);
        self.cache.clear();
        Ok(())
    }
}

/// A disk that does all and keeps nothing: to see what a change would lead to.
pub struct NoDisk;

impl Disk for NoDisk {
    fn block_bytes(&self) -> u32 {
        4096
    }

    fn blocks(&self) -> Blocks {
        0
    }

    fn read(&mut self, _: u64, _: &mut [u8]) -> Result<(), DiskError> {
        Err(DiskError)
    }

    fn write(&mut self, _: u64, _: &[u8]) -> Result<(), DiskError> {
        Ok(())
    }

    fn zero(&mut self, _: Extent) -> Result<(), DiskError> {
        Ok(())
    }

    fn flush(&mut self) -> Result<(), DiskError> {
        Ok(())
    }
}
