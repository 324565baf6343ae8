//! ACPI tables (ACPI 6.5, chapter 5) as bytes: firmware's, so nothing in them is believed.
//!
//! The problem: tables are lists of structures with lengths of their own, written by
//! firmware or a hypervisor. A length that is wrong must not lead out of the table or round
//! and round in it, and facts that contradict each other must not reach the allocator.
//!
//! The idea: [`structures`] walks a table and ends at the first length that is impossible.
//! [`Numa::read`] makes of SRAT and SLIT one picture of the nodes that is consistent, or an
//! error, and then the machine is taken for one node. [`Root`] leads to the tables, [`IsaPin`]
//! says where old devices' interrupts arrive, [`PowerOff`] and [`reset`] how the machine ends,
//! [`Dmar`] which IOMMU stands before which devices, [`Mcfg`] where their configuration lies.
//! Fixed sizes, for it runs before any heap.
//!
//! Not here: reading physical memory and writing registers (the machine layer), AML.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

mod bytes;
mod dmar;
mod isa;
mod mcfg;
mod numa;
mod power;
mod root;
mod slit;
mod srat;
mod structures;

#[cfg(test)]
mod tests;

pub use bytes::{address, sums_to_zero, word};
pub use dmar::{Buses, Dmar, RemappingUnit, RequesterId, ReservedMemory, Scopes};
pub use isa::{ISA_INTERRUPTS, IsaPin, SOURCE_OVERRIDE};
pub use mcfg::Mcfg;
pub use numa::{CPUS_MAX, MemoryRange, NODES_MAX, Numa, NumaError, RANGES_MAX};
pub use power::{PowerOff, Register, reset};
pub use root::{RSDP_BYTES_MAX, Root};
pub use structures::structures;
