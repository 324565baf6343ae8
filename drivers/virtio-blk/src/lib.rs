//! Disks over virtio (VIRTIO 1.2, section 5.2).
//!
//! # Idea
//! A command is one chain: a header that says what and where, the memory to read or write, and a
//! byte in which the device says how it ended. Headers and last bytes of all commands of a queue lie in
//! one buffer, a *slot* each ([`slots`]), so that a command allocates nothing. Where the device can,
//! the chain lies in a table of its own and takes one descriptor of the ring.
//!
//! The device has a queue for each CPU, if it has as many ([`channel`]). [`VirtioBlk`] is what is left: the
//! configuration ([`config`]), and stopping and starting it, which makes new queues.
//!
//! The standard knows no write that is forced to the medium: `block` follows it with a flush.
//!
//! # Invariant
//! A slot belongs to one command from its submission until its end was taken, or the device was stopped.
//!
//! Not here: which requests, time-outs, order (`block`); lifetimes (erase), zones.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod channel;
mod config;
mod device;
mod slots;

pub use device::{Interrupts, VirtioBlk};
