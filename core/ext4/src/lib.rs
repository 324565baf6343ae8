//! The ext4 file system: images of Debian's `mkfs.ext4`, read and written, so that `e2fsck` finds
//! nothing to say about them.
//!
//! # Problem
//! Data outlive the machine that wrote them only in a format that other systems read and that
//! tools check. A disk may lose power at any moment, be full, or be damaged on purpose; none of it
//! may cost committed data, or the machine.
//!
//! # Idea
//! Six layers, each with its own page on top of its file:
//! ```text
//! names, directory, htree, xattr, file, resize     what programs ask for
//! place, promise                                   data that a cache of pages writes by itself
//! extents, inodes, balloc                          trees, and who owns which block
//! volume                                           handles, commits, read-only after damage
//! journal                                          the log: commit, checkpoint, replay
//! store, seal                                      blocks in memory; undo; checks and checksums
//! layout                                           fields on the disk
//! ```
//! - A block is checked once, when it comes from the disk, and is then what it was taken for.
//! - An operation that fails is undone, whatever it did so far.
//! - A checksum is made once for each commit and not for each change.
//!
//! Everything is `&mut`: the kernel holds one lock around a [`Volume`] for metadata, and moves file
//! data outside of it where [`Volume::map`] says. The clock is an argument, the disk a trait
//! ([`Device`]).
//!
//! # Limits
//! Provided are the features of Debian's `mkfs.ext4` and `metadata_csum_seed`, `large_dir`,
//! `uninit_bg`, and images without a journal. Refused by their names ([`MountError::Feature`]):
//! `inline_data`, `meta_bg`, `encrypt`, `casefold`, `ea_inode`, `mmp`, `bigalloc`, external journals, fast commits. Only read
//! ([`MountError::ReadOnlyFeature`]): `quota`, `project`, `verity`, `orphan_present`. Files with block
//! maps of ext2 and ext3 are not read. Blocks have 4096 bytes at most.
//!
//! Not here: permissions, caching of pages, delayed allocation, quotas, access control lists,
//! blocks reserved for root.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod balloc;
mod bytes;
mod commit;
mod crc16;
mod device;
mod directory;
mod error;
mod extents;
mod file;
mod freed;
mod htree;
mod inodes;
mod journal;
mod layout;
mod mount;
mod names;
mod place;
mod promise;
mod recent;
mod resize;
mod seal;
mod store;
mod summary;
mod sums;
mod volume;
mod xattr;

pub use commit::{Commit, Step, SyncPoint};
pub use device::{Device, Durability};
pub use directory::Listed;
pub use error::{Corrupt, DeviceError, Error, MountError, Result};
pub use extents::{Mapping, Run};
pub use file::Seek;
pub use layout::inode::{FLAG_APPEND, FLAG_IMMUTABLE, FileType, Inode, Time};
pub use mount::{Access, Found};
pub use names::{Change, New, Rename, Unlinked};
pub use place::{Grown, WriteBlocks};
pub use promise::Promises;
pub use resize::Allocate;
pub use summary::Summary;
pub use volume::{ROOT_INODE, Sync, Usage, Volume};
pub use xattr::Expect;
