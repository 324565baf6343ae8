//! Intel's 82576, the "igb" that QEMU offers: its physical function, with up to eight
//! pairs of queues or up to seven virtual functions, and those, with a pair each.
//!
//! Source: Intel, "82576EB Gigabit Ethernet Controller Datasheet", revision 2.7; section
//! numbers are its. Registers that it shares with the 8254x are laid out as there.
//!
//! # Idea
//! A card comes up in parts (`hal::NicParts`). A pair of queues ([`Pair`]) belongs to one CPU:
//! its two rings, its interrupt. What pairs share belongs to one [`Control`]: address and
//! VLAN filters, the hash, moderation, the link, statistics. No part locks anything:
//! interrupt registers take single bits (write one to set, to clear), and each bit has one
//! owner.
//!
//! ```text
//!             ┌── address, VLAN filter ── hash ── table ──┐          control.rs
//!  wire ─────▶│                                           │
//!             └▶ ring n: rx.rs  empty buffers ─▶ DD seen ─▶ RxFrame   pair.rs, queue.rs
//!  wire ◀─────── ring n: tx.rs  contexts and data ◀── offload.rs ◀── TxFrame
//! ```
//!
//! With virtual functions ([`open_with_vfs`]) the card's queues are divided into pools (`pools`). Who
//! has a virtual function's registers drives it by the same code ([`vf`]), in the kernel or in a
//! program: what a frame costs does not depend on whose it is.
//!
//! # Interrupts (section 7.3)
//! Ring `n` raises MSI-X message `n`, for received frames only; the link raises the one
//! behind the last ring, which clears its cause (EIAC) and masks itself (EIAM). A ring's does neither: its cause stands until
//! the pair is armed again, and as long as it stands no frame raises another message. So a pair that is
//! polled is silent without being masked, and a wait takes one register (EICR), or none if no frame came since the last one.
//!
//! # Memory
//! Rings (`drivers/intel`) and buffers follow the contract of `docs/dma.md`. What the card knows is freed
//! after its queue said that it stopped, and kept for good if it did not.
//!
//! # What the card says
//! It is checked: frames that are damaged, of a length that cannot be, or in more than one
//! buffer are dropped and counted.
//!
//! # Not here
//! Making virtual functions (`hal::sriov`), split headers, jumbo frames, timestamps, IPsec; sharing the PHY
//! with a management controller (it has none in a virtual machine).
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod card;
mod control;
mod descriptor;
mod headers;
mod message;
mod offload;
mod open;
mod pair;
mod phy;
mod pools;
mod queue;
mod registers;
mod registers_pools;
mod rx;
mod segment;
#[cfg(test)]
mod tests;
mod tx;
pub mod vf;

pub use card::{Error, PAIRS_MAX, VFS_MAX, is_for};
pub use control::Control;
pub use open::{open, open_with_vfs, start, start_with_vfs};
pub use pair::Pair;
pub use pools::RequestCounters;
