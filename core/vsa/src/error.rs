//! Why something failed.

use crate::disk::DiskError;

/// Why an operation on a catalogue failed. What it holds is as before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Error {
    /// The disk; which of the two states a loss of power leaves is not known.
    Disk,
    /// There is no such area.
    NotFound,
    /// The area is somebody else's.
    NotOwner,
    /// The name is taken.
    Exists,
    /// The name is empty, too long, or has a slash or a zero byte.
    BadName,
    /// An area has at least one block.
    Empty,
    /// Not so many blocks are free.
    NoSpace,
    /// They are free, in more pieces than an area or the catalogue has room for.
    TooFragmented,
    /// The owner would have more than its quota.
    OverQuota,
    /// As many areas or quotas as the catalogue has room for; or its numbers are at their end.
    CatalogueFull,
}

/// Why a disk has no catalogue that can be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OpenError {
    /// The disk's blocks have no size that we know, or there is no room for both copies.
    Shape,
    /// Neither copy could be read.
    Disk,
    /// Neither copy is to be believed; the reasons, in order. A copy that could not be read has none.
    Refused([Option<Refused>; 2]),
}

/// Why one copy of a catalogue is not believed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refused {
    /// It does not begin as one.
    NotCatalogue,
    /// A format that came later.
    Version(u32),
    /// A checksum is wrong.
    Checksum,
    /// It is the other copy, in the wrong place.
    Misplaced,
    /// It was made for blocks of another size, or for a larger disk.
    Shape,
    /// It counts more areas, extents or quotas than it has room for, or its numbers are at their end.
    Counts,
    /// The name, id, version or size of this area makes no sense.
    Area(usize),
    /// A block of this area is outside the disk, the catalogue's, or another area's.
    Extent(usize),
    /// Two areas have one name or id.
    Twice,
    /// An owner has two quotas.
    Quota(usize),
}

impl From<DiskError> for Error {
    fn from(_: DiskError) -> Self {
        Self::Disk
    }
}
