//! VFIO: a program drives a PCI function by itself, and harms nobody but itself by it.
//!
//! The problem: a program that has a device's registers can have it read and write memory, and
//! can turn its interrupts and its addresses against others.
//!
//! The idea: of the three ways in which a device reaches out, each is ruled by a table here that
//! the program does not write to:
//!
//! - memory by [`Mappings`]: the device sees the program's pages at addresses (IOVAs) that the
//!   program chooses, each at most once, cut into [`pieces`] that an IOMMU's tables take;
//! - configuration space by [`Config`]: of what a program writes, two bits reach the device,
//!   and the rest is remembered or dropped;
//! - interrupts by [`IrqSet`]: a program says which eventfd an interrupt counts up, never where
//!   the device sends it: that is where the threads are that it wakes ([`Steering`]).
//!
//! Numbers and layouts are Linux's (include/uapi/linux/vfio.h), as are the errors of wrong
//! arguments: programs made for Linux run unchanged.
//!
//! Not here: files, pages, the IOMMU (`kernel/vfio`, `kernel/iommu`), and mediated devices,
//! dirty page logs, migration, device features.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod config;
mod irq_set;
mod layout;
mod mappings;
pub mod numbers;
mod pieces;
mod steering;
#[cfg(test)]
mod tests;

pub use config::{Bar, Config, Write};
pub use irq_set::{Action, Data, IrqSet};
pub use layout::{
    Argument, DeviceInfo, DmaAvailable, DmaMap, DmaUnmap, GroupStatus, IommuInfo, IovaRange,
    IovaRanges, IrqInfo, IrqSetHeader, NvmeAdmin, RegionInfo, SparseRegionInfo,
};
pub use mappings::{Iova, KERNEL_WINDOW, MAPPINGS_MAX, Mappings, Refusal, usable};
pub use pieces::{Piece, pieces};
pub use steering::Steering;
