//! Memory that the host has back for a while (VIRTIO 1.2, section 5.5, "traditional memory balloon device").
//!
//! # Idea
//! The device's configuration says how many frames the host wants. The driver puts lists of frames' numbers into one of
//! two queues: *inflate* for those that the host may have, *deflate* for those that the machine takes back. Whoever
//! uses this crate decides which and when; here is how it is said.
//!
//! ```text
//! device.rs  brings up, serves hal::BalloonDevice
//!   ├── buffer_queue.rs  a queue with one buffer
//!   └── statistics.rs    how memory is used, as the host reads it
//! ```
//!
//! A third queue is for the host's question how memory is used. It works the other way round: the last answer lies with
//! the device, which returns it to ask for the next.
//!
//! # Invariants
//! - A frame is the machine's again only when the device has used the list that takes it back, whatever features are
//!   agreed upon: this is right with and without `MUST_TELL_HOST`.
//! - One list is with the device at a time, and its memory is not touched meanwhile; the device is reset before memory
//!   is dropped.
//! - A queue with something in it is armed, whether somebody has looked since or not.
//!
//! Not here: which frames, and whose they are (the kernel); hints about free pages and their reporting, with which a host
//! takes pages that nobody asked it to take: see `docs/devices.md`.
#![no_std]
#![forbid(unsafe_code)]

mod buffer_queue;
mod device;
mod statistics;
#[cfg(test)]
mod tests;

pub use device::{Interrupts, VirtioBalloon};
