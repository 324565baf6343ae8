//! The virtio network device (VIRTIO 1.2, section 5.1).
//!
//! A receive and a transmit queue for each pair, one pair for each CPU that is to have
//! one, and a control queue for filters and for how many pairs there are. Frames travel in packet buffers (`mbuf`): the
//! device writes into a buffer that then moves up the stack, and reads from the buffers
//! that the sockets filled. Nothing is copied here.
//!
//! ```text
//! bring up: card.rs ─▶ pair.rs for each CPU, control.rs (commands.rs, table.rs) for all
//! receive:  rx.rs  empty buffers ─▶ device ─▶ header parsed (header.rs) ─▶ RxFrame
//! transmit: tx.rs  TxFrame ─▶ header written in front ─▶ device ─▶ freed lazily
//! ```
//!
//! Transmit completions raise no interrupt: buffers are taken back when the queue is
//! half full or when frames are received, because a doorbell or an interrupt costs more
//! than all the rest of a frame's way through the driver.
//! A device can only be stopped as a whole: a part that goes before the last one leaves
//! its memory to the device for good.
//! Not here: which CPU owns a pair, the hash in the header (`VIRTIO_NET_F_HASH_REPORT`).
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod card;
mod commands;
mod control;
mod header;
mod pair;
mod rx;
mod table;
#[cfg(test)]
mod tests;
mod tx;

pub use card::{Parts, open};
pub use control::Control;
pub use pair::Pair;
