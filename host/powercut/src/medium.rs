//! What a disk has on its medium: an image that many share, and the sectors that differ from it.

use std::collections::BTreeMap;
use std::sync::Arc;

/// What a disk writes whole or not at all.
pub const SECTOR_BYTES: usize = 512;

/// A sector's bytes.
pub type Sector = Arc<[u8; SECTOR_BYTES]>;

/// The bytes of a disk; a clone costs what differs from the image.
#[derive(Clone)]
pub struct Medium {
    image: Arc<Vec<u8>>,
    changed: BTreeMap<u64, Sector>,
}

/// The sectors of `bytes`, numbered from `first` on.
pub fn sectors(first: u64, bytes: &[u8]) -> impl Iterator<Item = (u64, Sector)> {
    let (whole, rest) = bytes.as_chunks();
    assert!(rest.is_empty(), "writes are whole sectors");
    (first..).zip(whole.iter().map(|part| Arc::new(*part)))
}

impl Medium {
    /// A disk with these bytes.
    pub fn new(image: Vec<u8>) -> Self {
        Self {
            image: Arc::new(image),
            changed: BTreeMap::new(),
        }
    }

    /// Its size.
    pub fn bytes(&self) -> u64 {
        self.image.len() as u64
    }

    /// Stores one sector.
    pub fn put(&mut self, sector: u64, bytes: Sector) {
        self.changed.insert(sector, bytes);
    }

    /// Fills `into` from byte `offset` on, which need not be a sector's first; beyond the end are zeroes.
    pub fn read(&self, offset: u64, into: &mut [u8]) {
        into.fill(0);
        let from = self.image.get(offset as usize..).unwrap_or(&[]);
        let len = from.len().min(into.len());
        into[..len].copy_from_slice(&from[..len]);
        let end = offset + len as u64;
        let each = SECTOR_BYTES as u64;
        let touched = offset / each..end.div_ceil(each);
        for (sector, bytes) in self.changed.range(touched) {
            let at = sector * each;
            let (first, last) = (at.max(offset), (at + each).min(end));
            into[(first - offset) as usize..(last - offset) as usize]
                .copy_from_slice(&bytes[(first - at) as usize..(last - at) as usize]);
        }
    }

    /// All bytes, as a file would have them.
    pub fn flatten(&self) -> Vec<u8> {
        let mut all = vec![0; self.image.len()];
        self.read(0, &mut all);
        all
    }

    /// The same as an image of its own, so that clones cost nothing.
    pub fn settle(&self) -> Self {
        Self::new(self.flatten())
    }
}
