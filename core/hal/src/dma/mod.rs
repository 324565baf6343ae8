//! Memory shared with a device: the DMA contract.
//!
//! # Problem
//! A device knows addresses on its bus and nothing of page tables. A driver that takes
//! the address of the first byte and adds an offset is right only if the memory is
//! contiguous *for the device*. An allocator that stops to promise this breaks
//! such a driver in silence: most of its buffers go to frames of somebody else, the
//! network "works" by retransmission, at 76 requests per second (`docs/dma.md` tells
//! the story).
//!
//! # Idea
//! The promise is a type.
//! - [`DmaBuf`] is contiguous memory. A [`DmaSource`] makes it, out of contiguous frames
//!   only; there is no way from a list of pages to a `DmaBuf` but [`SgList::join`], which
//!   checks every seam.
//! - [`SgList`] is scattered memory. It tells a device its spans one by one, and has no
//!   address of its own.
//! - A [`Span`] is what a device may be told: an address *and* a length. It is only made
//!   from memory that covers all of it: by [`HasDeviceAddr::dev_addr`], or from a packet
//!   buffer, which is cut from a `DmaBuf` ([`DmaBuf::into_packets`]).
//! - Who may touch the bytes is a type, too ([`owner`]), and so is how the processor
//!   caches them ([`caching`]).
//!
//! An address on its own, or the address of memory that the processor still owns, does
//! not compile:
//!
//! ```compile_fail,E0599
//! # let memory = hal::sim::SimMemory::new();
//! let list: hal::SgList = hal::SgList::alloc(&memory, 65536).unwrap();
//! let list = list.give();
//! list.dev_addr(0, 65536);                    // scattered memory has no address
//! ```
//! ```compile_fail,E0277
//! # let memory = hal::sim::SimMemory::new();
//! let list: hal::SgList = hal::SgList::alloc(&memory, 65536).unwrap();
//! let area: hal::DmaBuf = list.into();        // and does not turn contiguous by itself
//! ```
//! ```compile_fail,E0277
//! # let pages: Vec<hal::DmaBuf> = Vec::new();
//! let area: hal::DmaBuf = pages.into_iter().collect();
//! ```
//! ```compile_fail,E0451
//! let span = hal::Span { addr: base::DeviceAddr(0x1000), len: 65536 };
//! ```
//! ```compile_fail,E0599
//! # use hal::{DmaBuf, DmaRequest, DmaSource, HasDeviceAddr};
//! # let memory = hal::sim::SimMemory::new();
//! let area: DmaBuf = memory.dma_alloc(&DmaRequest::new(65536, 4096)).unwrap();
//! area.dev_addr(0, 2048);                     // it was not given to the device
//! ```
//! ```compile_fail,E0599
//! # use hal::{DmaBuf, DmaRequest, DmaSource};
//! # let memory = hal::sim::SimMemory::new();
//! let area: DmaBuf = memory.dma_alloc(&DmaRequest::new(65536, 4096)).unwrap();
//! let area = area.give();
//! area.copy_in(0, b"too late");               // the device reads it now
//! ```
//! ```compile_fail,E0382
//! # use hal::{DmaBuf, DmaRequest, DmaSource};
//! # let memory = hal::sim::SimMemory::new();
//! let area: DmaBuf = memory.dma_alloc(&DmaRequest::new(65536, 4096)).unwrap();
//! let theirs = area.give();
//! area.copy_in(0, b"a handle kept back");     // ownership moved
//! ```
//! ```compile_fail,E0277
//! struct MyMemory;
//! impl hal::HasDeviceAddr for MyMemory {      // sealed
//!     fn dev_addr(&self, _: usize, _: usize) -> Option<hal::Span> { None }
//! }
//! ```
//!
//! What is right does:
//!
//! ```
//! use hal::{DmaBuf, DmaRequest, DmaSource, HasDeviceAddr};
//! # let memory = hal::sim::SimMemory::new();
//! let area: DmaBuf = memory.dma_alloc(&DmaRequest::new(65536, 4096)).unwrap();
//! let area = area.give();
//! let slice = area.dev_addr(2048 * 31, 2048).unwrap();
//! assert_eq!(slice.len(), 2048);
//! assert!(area.dev_addr(2048 * 31 + 1, 2048).is_none(), "it would leave the area");
//! area.take_back().copy_out(0, &mut [0; 64]);
//! ```
//!
//! # Freeing
//! Memory whose address a device knows is not freed: dropped in the device's hands it is
//! leaked, since a write that is still to come would hit its next owner. A driver
//! stops the device and takes the memory back, or [`retires`](DmaBuf::retire) it.

mod buf;
pub mod caching;
pub mod owner;
mod request;
mod sg;
mod shared_words;
mod span;
mod words;

pub use buf::{DmaBuf, DmaRelease};
pub use request::{DmaError, DmaRequest, DmaSource};
pub use sg::{NotContiguous, SgList};
pub use shared_words::SharedWords;
pub use span::{HasDeviceAddr, Span};
