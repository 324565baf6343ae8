//! Split virtqueues (VIRTIO 1.2, section 2.7), driver's side, safe against a hostile device.
//!
//! # Problem
//! Driver and device share three rings. The device may be buggy or malicious: it may
//! complete what was never given to it, complete it twice, claim more bytes than there
//! was room for, or write anywhere in the rings at any time.
//!
//! # Idea
//! The rings in shared memory are only ever *told* to the device. All that the driver
//! needs to know again (which descriptors form a chain, which are free, how many bytes
//! may have been written) stands in a private shadow. What the device says is read once
//! and checked against the shadow; the first lie breaks the queue for good
//! ([`QueueError`]), and the driver resets the device.
//!
//! # Use
//! [`Queue::add`] any number of chains, then [`Queue::publish`] once; it says whether
//! the device wants a doorbell. [`Queue::take`] yields completions by [`Token`], which
//! is below the queue's size, so drivers keep what is in flight in a plain table.
//!
//! # Invariants
//! - **Shadow**: a descriptor is either on the free list or in exactly one chain in
//!   flight; `free` plus the parts of all chains in flight equals the queue's size.
//! - **Once**: a token is in flight from `add` until `take` returns it.
//! - **Alive**: the queue's memory outlives the device's use of it: whoever owns a queue
//!   resets the device before dropping it.
//!
//! Not here: doorbells and interrupts (`virtio`), packed queues.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod layout;
mod queue;
mod shadow;
pub mod sim;

pub use layout::{Addresses, SIZE_MAX};
pub use queue::{Config, Part, Queue, Used};
pub use shadow::{AddError, QueueError, Token};
