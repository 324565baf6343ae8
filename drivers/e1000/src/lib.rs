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
//! The card comes in two parts: the port ([`E1000`]) is its CPU's, the filters ([`Control`])
//! are the control plane's.
//! Not here: jumbo frames, segmentation by the card, tags that the card puts in or takes out.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod control;
mod descriptor;
mod device;
mod eeprom;
mod registers;
#[cfg(test)]
mod tests;
mod tx;

pub use control::Control;
pub use device::{E1000, Error, Parts};
pub use registers::Interrupt;
