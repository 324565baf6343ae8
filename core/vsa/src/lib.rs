//! Virtual storage areas (VSAs): parts of a disk that programs own, and the catalogue of them.
//!
//! # Problem
//! A program that is to reach a disk without a call needs blocks that are its own and nobody
//! else's. Who owns which block has to survive a loss of power at any moment, a damaged
//! block, and a disk whose catalogue somebody wrote on purpose.
//!
//! # Idea
//! The catalogue is small (128 KiB) and there are two copies of it, each with a checksum over all of it,
//! a generation and its own number. A change is made in memory, then written as a whole:
//! ```text
//! body of the older copy, flush, its header, flush      from here on the change holds
//! body of the other copy, flush, its header, flush      from here on one copy may be damaged
//! ```
//! Whoever opens the disk takes the newest copy that is whole. A [`Map`] is what a fast path needs of an area:
//! sorted runs, translated without an allocation, and no way to a block outside.
//!
//! | file | is about |
//! |---|---|
//! | `catalogue` | what is asked: create, acquire, resize, delete, quotas |
//! | `areas` | the state that a change starts from and makes |
//! | `space` | which blocks are free, and which of them an area is given |
//! | `layout` | the bytes on the disk, and which are refused |
//! | `copies` | both copies: reading the better one, writing one after the other |
//! | `map` | block of an area to block of the disk |
//! | `ring` | the queue of a program to its area: codec, checks, both ends |
//! | `control` | what is asked of the kernel about areas |
//!
//! # Invariants
//! - **Disjoint**: no block belongs to two areas, or to an area and the catalogue. Decoding checks it,
//!   the allocator keeps it.
//! - **One whole copy**: a copy is overwritten only while the other is whole, on the medium, and not
//!   older than what was last acknowledged.
//! - **Clean**: blocks that an area is given read as zeroes: nobody reads what others deleted.
//! - **Fresh names**: an area's id is never used again, and its version grows with each resize, so an old map is
//!   known for one.
//!
//! # When a change fails
//! The state in memory is as before. What is on the disk is one of the two: so a failed
//! shrink or deletion may still take effect at the next opening, and nobody may rely on the blocks it gave up.
//!
//! No lock (the caller has one around a [`Catalogue`]), no clock, no disk of its own ([`Disk`] is lent for
//! each call). Not here: taking a map away from a program that has it, which the caller does before
//! it resizes or deletes; who a user is.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod areas;
mod catalogue;
pub mod control;
mod copies;
mod disk;
mod error;
mod extent;
mod layout;
mod map;
mod planted;
pub mod ring;
mod space;
#[cfg(test)]
mod tests;

pub use areas::{Area, AreaId, Name, Quota, Uid};
pub use catalogue::{Catalogue, New};
pub use copies::CopyState;
pub use disk::{Disk, DiskError};
pub use error::{Error, OpenError, Refused};
pub use extent::{Blocks, Extent};
pub use layout::{COPY_BYTES, seal};
pub use map::{Map, OutOfArea, Pieces, Window};

/// Areas of one disk.
pub const AREAS_MAX: usize = 512;
/// Extents of one area.
pub const AREA_EXTENTS_MAX: usize = 64;
/// Extents of all areas.
pub const EXTENTS_MAX: usize = 3072;
/// Users with a quota of their own.
pub const QUOTAS_MAX: usize = 256;
/// Bytes of a name.
pub const NAME_MAX: usize = 64;
