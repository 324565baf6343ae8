//! The machine as drivers see it: registers, memory shared with a device, PCI
//! functions, network ports, streams of bytes.
//!
//! A driver is portable logic over these few types. The kernel makes them from real
//! hardware, the user-level library from what the kernel granted to it, a test from
//! [`sim::SimMemory`]. Drivers therefore contain no `unsafe` and no page tables.
//!
//! Contracts that are types here:
//! - [`Mmio`] is a bounded window of registers; every access is checked.
//! - [`DmaBuf`] is *contiguous* memory; only it, and the packet buffers cut from it, has
//!   an address for a device, and only while the device owns it. Scattered memory is
//!   another type, [`SgList`].
//! - A [`Span`] is what a device may be told: an address and a length, taken from
//!   memory that covers both.
//! - A network card is a [`FramePort`] for each pair of queues, and one [`NicControl`];
//!   one with several pairs comes in parts, [`NicParts`].
//! - A device for streams of bytes is a [`BytePorts`], one that asks for memory a [`BalloonDevice`].
//!
//! Not here: who owns interrupts' vectors (the kernel), what a packet buffer is
//! (`mbuf`), any driver.
//!
//! # Invariants that the unsafe code rests on
//! - **WINDOW**: whoever calls [`Mmio::new`] vouches that the range is mapped, and stays
//!   so, for device access of every width up to eight bytes.
//! - **CONTIGUOUS**: whoever calls [`DmaBuf::new`] vouches that byte `i` of the memory has
//!   the device address `device + i`, for all of it. This is the promise whose breach is
//!   invisible; so it is made in one place of the kernel, from an extent of frames.
//! - **OWNED**: whoever calls [`DmaBuf::new`] vouches that the memory is mapped,
//!   writable, zeroed, aligned to at least eight bytes and reached by nobody but the
//!   buffer and the device until `release` is called. It is only ever touched through
//!   raw pointers: no reference to it exists, so a device that writes at any time
//!   can change values but not break Rust's rules.
#![no_std]

extern crate alloc;

mod balloon;
pub mod bus_space;
mod byte_ports;
mod dma;
mod frame_port;
mod mmio;
pub mod msi;
mod multiqueue;
mod nic;
pub mod pci;
mod port_counters;
mod registers;
pub mod sim;
pub mod sriov;
mod watchdog;

pub use balloon::{BalloonBroken, BalloonDevice, HANDOVER_FRAMES_MAX, Handover, MemoryUse};
pub use byte_ports::{BytePorts, HostEnd, NoBuffers, PortNumber};
pub use dma::{
    DmaBuf, DmaError, DmaRelease, DmaRequest, DmaSource, HasDeviceAddr, NotContiguous, SgList,
    SharedWords, Span, caching, owner,
};
pub use frame_port::{Capabilities, FramePort};
pub use mmio::Mmio;
pub use multiqueue::{NicParts, QueuePair, RxNotes};
pub use nic::{
    CardCounters, LinkState, MulticastFilter, NicControl, NicError, NicShape, PromiscuousScope,
    RingGroup, SpreadRule, VlanFilter,
};
pub use port_counters::PortCounters;
pub use registers::Registers;
pub use watchdog::{Remedy, STALL_MAX, Stall, Watchdog};
