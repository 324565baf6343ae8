//! Intel's 82540EM and 82545EM: the "e1000" that QEMU, VirtualBox and VMware offer, and
//! the `wm` device of the story in `docs/dma.md`.
//!
//! Source: Intel, "PCI/PCI-X Family of Gigabit Ethernet Controllers Software Developer's
//! Manual" (8254x), revision 4.0; section numbers are its.
//!
//! Two rings of descriptors in memory, shared with the card (`drivers/intel`).
//! Frames travel in packet buffers (`mbuf`): nothing is copied here. Received
//! frames land in slices of 64 KiB areas, which the pool cut from contiguous memory.
//!
//! ```text
//! receive:  intel  empty buffers ─▶ card ─▶ DD seen (descriptor.rs) ─▶ RxFrame
//! transmit: tx.rs  TxFrame ─▶ context (checksum) and data descriptors ─▶ card ─▶ freed lazily
//! ```
//!
//! The card's line is shared with other devices and level-triggered, so the interrupt
//! handler ([`Interrupt`]) silences the card at once; arming lets it speak again. No
//! interrupt tells of sent frames.
//! Not here: jumbo frames, VLAN tags, segmentation by the card, the link's speed.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod descriptor;
mod device;
mod eeprom;
mod registers;
#[cfg(test)]
mod tests;
mod tx;

pub use device::{E1000, Error};
pub use registers::Interrupt;
