//! Packet buffers: shared DMA-able memory cut into slices and chained.
//!
//! # Problem
//! A byte that arrives at the NIC should reach the program with one copy, and a byte
//! that a program sends should stay where it was written until the peer has
//! acknowledged it, however often it is transmitted. So buffers are shared between a
//! socket's queue and frames in flight, and each layer puts its header in front of
//! bytes that it does not own.
//!
//! # Idea
//! A *block* is a fixed piece of contiguous memory with a reference count.
//! An [`Mbuf`] is a slice of one block; cloning shares the block. A [`Chain`] is the
//! ordered list of slices that makes one frame or one stretch of a stream. [`TxFrame`]
//! and [`RxFrame`] are what crosses the border to a driver. A [`ExternalStorage`] lends memory of its
//! own, which is then a block that nobody may write.
//!
//! # Invariants (cited by the `SAFETY` comments)
//! - **Live:** a block's memory stays allocated and initialised from the moment it
//!   joins a pool until the pool is torn down with every block at home; a lent block's as
//!   long as it has an `Mbuf`.
//! - **Counted:** `refs` equals the number of `Mbuf`s of a block (and says whether it is
//!   lent); a block at home has none.
//! - **Inside:** `[offset, offset + len)` of an `Mbuf` lies within its block's data, and a
//!   block has less than 1 GiB.
//! - **Head:** if an `Mbuf` has `OWNS_HEAD`, no other `Mbuf` covers a byte before its
//!   start. **Tail:** if it has `OWNS_TAIL`, none covers a byte at or after its end.
//!   So a header may be written in front of shared bytes, and a stream may grow behind
//!   bytes that are in flight. A sole owner (`refs == 1`) has both rights anyway. Of a lent
//!   block nobody has either, nor is anybody its sole owner.
//! - **Unsteady:** lent bytes may change while they are read, as a file's do that somebody
//!   writes. So readers only copy or sum them; headers and lengths are never believed there,
//!   for they lie in blocks of a pool.
//! - **Own:** a [`Magazine`] is reached by one flow of control alone: that of the CPU which its
//!   list's `own` names.
//! - **Quiet:** a device writes into a block only while its `Mbuf` is kept by the driver
//!   that posted it, and nobody holds a reference to its bytes then.
//!
//! # Not here
//! Where blocks come from (the kernel's DMA pages or the host's heap add them to a
//! [`FreeList`]), and any meaning of the bytes.
#![no_std]

extern crate alloc;

mod chain;
mod frame;
mod heap;
mod lent;
mod long;
mod magazine;
mod mbuf;
mod pool;

pub use chain::{Chain, Slices};
pub use frame::{
    Checksum, ChecksumOffload, Coalesced, RxFrame, SegmentKind, SegmentOffload, TxFrame,
};
pub use heap::HeapPool;
pub use lent::ExternalStorage;
pub use magazine::{MAGAZINE_BLOCKS, Magazine};
pub use mbuf::Mbuf;
pub use pool::{BLOCK_BYTES, BLOCK_CAPACITY, FreeList, Pool};
