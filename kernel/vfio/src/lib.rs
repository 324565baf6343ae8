//! /dev/vfio: a program takes a PCI function that no driver of the kernel has, and drives it.
//!
//! The problem: a device that a program drives reads and writes memory for it, and interrupts.
//! Both must reach what is the program's and nothing else, until the very end of a program that
//! is killed in the middle of it.
//!
//! The idea is Linux's, and so is the interface (linux/vfio.h, the legacy one of containers and
//! groups): a *group* is what the IOMMU can tell from others, a function here; a *container* is an
//! address space for devices, into which a program maps pinned pages of its own; a *device* is the
//! function's registers, configuration space and interrupts. The rules are in `core/vfio`.
//!
//! # Who owns what
//! ```text
//! device's file ─▶ Device ─▶ Session ─▶ Lent (the IOMMU's domain of the function)
//! group's file ────────────▶    │           ▲
//!                               ▼           │
//! container's file ─▶ Container ─┴───────────┘  and the mappings with their pages
//! ```
//! A session is a group that is open. A mapping of registers keeps the device's file open.
//!
//! # The end
//! Whatever is closed last ends it, in this order, in a file's drop and so without sleeping: the
//! device stops reaching out, its interrupts lead nowhere, its reset begins (`Device`); its domain is
//! emptied and the unit has forgotten it (`Container::detach`, `Lent`); then pages go
//! (`Pinned`). The next program can have the group at once; it waits where a reset is not over.
//!
//! # Revocation
//! The administrator ends it at any time, without the program's help (`unbind` in sysfs): the device stops, its domain
//! is emptied, and its program is told by the eventfd of VFIO_PCI_REQ_IRQ_INDEX. Nobody else can have the group
//! until the program has closed its files.
//!
//! Invariant **Reached**: a page that a domain maps is in a mapping of a container, and a
//! container's pages go only after each domain that mapped them has been emptied of them, with the
//! unit's word for it. Without that word they are nobody's for good.
//!
//! # Bounds
//! Mappings (65 535 in a container), pages (RLIMIT_MEMLOCK of the user, and half of memory for all,
//! the IOMMU's tables included), interrupts (64 for all programs).
//!
//! # Lock order
//! A session's state; a container's mappings (both sleep); a container's list of loans; a unit of the
//! IOMMU. A device's interrupts, then a vector's trigger, then an eventfd.
//!
//! Not here: interrupt lines (INTx), several MSI messages of a function, base addresses in I/O
//! space, expansion ROMs, the interface of iommufd.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod argument;
mod confinement;
mod container;
mod device;
mod group;
mod pinned;
mod session;
mod shape;
mod trigger;
mod vectors;

pub use confinement::is_absent as are_unconfined;
pub use group::{bind, group_of};

use vfs::devices::{Device, register};

/// Linux's number of miscellaneous devices, and the container's among them.
const CONTAINER: (u32, u32) = (10, 196);

/// Offers the functions that no driver has, also without an IOMMU if that is allowed. After the
/// drivers were started.
pub fn init(allows_unconfined: bool) {
    confinement::decide(allows_unconfined);
    if !group::find_all() {
        return;
    }
    register(Device {
        name: "vfio/vfio",
        major: CONTAINER.0,
        minors: (CONTAINER.1, CONTAINER.1),
        mode: 0o666,
        open: |_, _| container::open(),
    });
    group::register_all();
}
