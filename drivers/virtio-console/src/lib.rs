//! Streams of bytes to and from the host (VIRTIO 1.2, section 5.3, "console device").
//!
//! # Idea
//! The device has *ports*. Each has a receive and a transmit queue, and so its own flow
//! control: a port whose bytes nobody takes keeps its buffers, the device stops reading from
//! the host for it, and the other ports go on. A pair of control queues says which ports
//! there are, what they are called and whether the host holds their other end.
//!
//! ```text
//! device.rs  brings up, serves hal::BytePorts
//!   ├── control.rs   messages about ports
//!   └── port.rs      one port: receiver.rs (host ─▶ machine), transmitter.rs (machine ─▶ host)
//! ```
//!
//! A buffer with the device is one chain of one part. Buffers for a port are allocated when
//! it is opened, so ports that nobody uses cost a queue only.
//!
//! # Invariants
//! - A buffer is not touched between its submission and its completion, and the device is
//!   reset before buffers are dropped.
//! - A receive queue is armed whenever everything that it holds was taken. A transmit queue
//!   is armed once somebody has found no room, or asked whether all is sent: else no
//!   interrupt says that a buffer is free.
//! - What a device completes before a control message is seen by whoever looks after having
//!   read that message: so no byte is lost at the end of a stream.
//!
//! Not here: what the streams are for (the kernel), the emergency write register, and ports
//! that come or go while the machine runs.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod control;
mod device;
mod port;
mod receiver;
#[cfg(test)]
mod tests;
mod transmitter;

pub use device::VirtioConsole;
