//! Physical frames: who owns each 4 KiB of RAM, how many share it, what is free, and
//! what of it is zero.
//!
//! The problem: an allocator that runs before any heap exists, that gives single
//! frames in a few instructions and physically contiguous runs when a device needs
//! them, and that never loses or doubles a frame.
//!
//! The idea (p2buddy, from the Redox kernel): RAM is described by one [`FrameInfo`] of
//! two words per frame. A frame in use keeps its reference count there; a free block
//! keeps its order and its list links there, so the free lists need no other memory.
//! Allocation splits a larger block, release merges buddies; both take at most
//! [`ORDERS`] steps whatever the size of RAM or of the block. The lists are kept by zone
//! ([`Zones`]), and a CPU asks those of its own node first ([`Layout`]). In front, each CPU keeps single frames and huge pages that it fills and
//! drains in batches ([`LocalFrames`]). A bit per frame says that a free frame holds
//! zeros, so that none is zeroed twice and the idle loop can zero ahead.
//!
//! The states of a frame are types, and each change consumes the one before:
//!
//! | state | is |
//! |---|---|
//! | free | inside of [`Zones`] or [`LocalFrames`], which let no name of it out |
//! | owned | a [`Frame`] or an [`Extent`], neither of which can be copied |
//! | mapped, shared | the machine layer's `Page`: a counted claim ([`FrameTable::share`]) |
//! | device | `hal::DmaBuf`, made from an [`Extent`] only |
//!
//! Invariants:
//! - *Used is marked*: the word of every frame says "used, one owner", except that of
//!   the first frame of a free block, and those of frames that are shared right now.
//!   So neither a split nor a large allocation touches the words of inner frames.
//! - *Heads are true*: the first frame of every free block records order and links,
//!   and is on the list of that order.
//! - *Flips are serial*: the used bit of a frame changes only through `&mut` [`Zone`], its
//!   own, and no block crosses a zone's border. So a lock around each zone makes a look at
//!   the neighbour's word safe.
//! - *Contiguity is a type*: an [`Extent`] comes only from one block of the buddy, by
//!   splitting an extent, or by joining two that touch; it can not be copied.
//! - *Zero is known*: the known-zero bit of a frame is set only while the frame is free,
//!   and then its content is zeros. It is forgotten when the frame goes into use.
//! - *One writer*: [`LocalFrames`] is changed by its own CPU alone, one flow of control.
//!   Others may read its numbers. So its atomics are plain loads and stores.
//!
//! Not here: the locks (the machine layer has them, with its own way to wait), how a frame
//! is zeroed, mapping, finding out where RAM is and which node it belongs to.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

mod buddy;
mod contiguous;
mod counts;
mod extent;
mod home;
mod idle;
mod info;
mod layout;
mod local;
mod shuffle;
mod stack;
mod table;
mod zone;
mod zones;

#[cfg(test)]
mod tests;

pub use buddy::{ORDERS, PAGES_MAX};
pub use counts::CacheStats;
pub use extent::{Extent, Frame};
pub use info::FrameInfo;
pub use layout::{Layout, NODES_MAX, Node, ZONES_MAX};
pub use local::{BATCH, Backing, HUGE_PAGES, LocalFrames};
pub use table::{FrameTable, Overshared, SECTIONS_MAX, TooManySections};
pub use zone::{Zone, reserve_of};
pub use zones::{Reach, Request, Urgency, ZoneLock, ZoneStats, Zones};

/// Number of a 4 KiB frame: its physical address divided by the page size.
///
/// A name, not a claim: owning memory is expressed by [`Frame`] and [`Extent`] and by the
/// handles that the machine layer builds on them.
pub type FrameNo = u64;
