//! Intel VT-d: the IOMMU of PCs, which QEMU models as `intel-iommu`.
//!
//! Source: "Intel Virtualization Technology for Directed I/O, Architecture Specification",
//! revision 4.1; section numbers are its. Only the legacy mode of its tables is used.
//!
//! # Problem
//! A device reaches memory by itself. One that is told a wrong address, or that a program or a
//! peer has talked into it, reads and writes what is somebody else's.
//!
//! # Idea
//! A unit stands between devices and memory. Each request carries the number of the function
//! that makes it; that leads by two tables to a *domain*, which is a page table: what it does not
//! map, the function does not reach.
//!
//! ```text
//! request ─▶ root table ─▶ context table ─▶ second-level tables ─▶ memory
//!            by bus        by function      by address, 3 or 4 levels
//!                 (context.rs)                (second_level.rs)
//! ```
//!
//! The unit caches all of it. What is taken out of a table still works until the unit has
//! been told to forget it and has said that it did (`queue.rs`): [`Unit::unmap`] returns
//! after that, and only then may the memory be somebody else's. What was refused stands in
//! registers until it is read (`fault.rs`).
//!
//! What a device writes to the interrupt range is an interrupt, and passes by all domains. A table
//! of its own says which function may raise which (`interrupts.rs`).
//!
//! Tables lie in uncached memory: a unit may read them past the processor's caches (6.2.1), and
//! they change too rarely for that to cost anything.
//!
//! All waits for the unit are bounded; one that does not answer is an error, and what it was
//! to forget must then be taken as still reachable.
//!
//! Not here: which devices are behind which unit (`core/acpi`), what is mapped for whom
//! (the kernel), scalable mode, devices that cache translations themselves.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod capabilities;
mod context;
mod error;
mod fault;
mod interrupts;
mod node;
mod pages;
mod queue;
mod registers;
mod second_level;
mod table;
#[cfg(test)]
mod tests;
mod unit;

pub use capabilities::Capabilities;
pub use error::{Error, MissingFeature};
pub use fault::{Fault, Reason, Taken};
pub use interrupts::{Interrupt, message_of};
pub use pages::{MapError, Pages, Rights};
pub use registers::{REGISTERS_BYTES, REGISTERS_BYTES_MAX};
pub use unit::{DomainId, Unit};
