//! ACPI tables (ACPI 6.5, chapter 5) as bytes: firmware's, so nothing in them is believed.
//!
//! The problem: tables are lists of structures with lengths of their own, written by
//! firmware or a hypervisor. A length that is wrong must not lead out of the table or round
//! and round in it, and facts that contradict each other must not reach the allocator.
//!
//! The idea: [`structures`] walks a table and ends at the first length that is impossible.
//! [`Numa::read`] makes of SRAT and SLIT one picture of the nodes that is consistent, or an
//! error, and then the machine is taken for one node. Fixed sizes, for it runs before any
//! heap.
//!
//! Not here: finding tables and their checksums (the machine layer, which can read physical
//! memory), AML.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

mod bytes;
mod numa;
mod slit;
mod srat;
mod structures;

#[cfg(test)]
mod tests;

pub use bytes::{address, word};
pub use numa::{CPUS_MAX, MemoryRange, NODES_MAX, Numa, NumaError, RANGES_MAX};
pub use structures::structures;
