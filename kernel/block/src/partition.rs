//! A partition: a part of a disk with a node of its own.

use block::SectorRange;

/// A part of a disk.
pub struct Partition {
    /// From 1 on.
    pub number: u8,
    /// `vda1`.
    pub name: &'static str,
    /// Where it lies on the disk.
    pub sectors: SectorRange,
}
