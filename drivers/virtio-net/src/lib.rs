//! The virtio network device (VIRTIO 1.2, section 5.1).
//!
//! One receive and one transmit queue. Frames travel in packet buffers (`mbuf`): the
//! device writes into a buffer that then moves up the stack, and reads from the buffers
//! that the sockets filled. Nothing is copied here.
//!
//! ```text
//! receive:  rx.rs  empty buffers ─▶ device ─▶ header parsed (header.rs) ─▶ RxFrame
//! transmit: tx.rs  TxFrame ─▶ header written in front ─▶ device ─▶ freed lazily
//! ```
//!
//! Transmit completions raise no interrupt: buffers are taken back when the queue is
//! half full or when frames are received, because a doorbell or an interrupt costs more
//! than all the rest of a frame's way through the driver.
//! Not here: several queue pairs and the control queue.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod device;
mod header;
mod rx;
#[cfg(test)]
mod tests;
mod tx;

pub use device::{Counters, VirtioNet};
