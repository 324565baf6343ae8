//! Physical frames: who owns each 4 KiB of RAM, how many share it, what is free.
//!
//! The problem: an allocator that runs before any heap exists, that gives single
//! frames in a few instructions and physically contiguous runs when a device needs
//! them, and that never loses or doubles a frame.
//!
//! The idea (p2buddy, from the Redox kernel): RAM is described by one [`FrameInfo`] of
//! two words per frame. A frame in use keeps its reference count there; a free block
//! keeps its order and its list links there, so the free lists need no other memory.
//! Allocation splits a larger block, release merges buddies; both take at most
//! [`ORDERS`] steps whatever the size of RAM. In front, each CPU keeps a
//! [`FrameCache`] of single frames that it fills and drains in batches.
//!
//! Invariants:
//! - *Used is marked*: every frame that is not in a free block has the used bit, also
//!   frames never donated (reserved RAM, metadata) and the inner frames of an extent.
//! - *Heads are true*: the first frame of every free block records order and links,
//!   and is on the list of that order. Words of its inner frames mean nothing.
//! - *Flips are serial*: the used bit changes only through `&mut` [`Buddy`], so one
//!   lock around it makes a look at the neighbour's word safe.
//! - *Contiguity is a type*: an [`Extent`] comes only from one block of the buddy, by
//!   splitting an extent, or by joining two that touch; it can not be copied.
//!
//! Not here: the lock (the machine layer has it, with its own way to wait), zeroing,
//! mapping, and finding out where RAM is.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

mod buddy;
mod cache;
mod extent;
mod info;
mod table;

#[cfg(test)]
mod tests;

pub use buddy::{Buddy, ORDERS, PAGES_MAX};
pub use cache::{CACHE_BATCH, FrameCache};
pub use extent::Extent;
pub use info::FrameInfo;
pub use table::{FrameTable, Overshared, SECTIONS_MAX, TooManySections};

/// Number of a 4 KiB frame: its physical address divided by the page size.
///
/// A name, not a claim: owning memory is expressed by [`Extent`] and by the handles
/// that the machine layer builds on it.
pub type FrameNo = u64;
