//! Folders of the host: 9P over virtio (QEMU's `virtio-9p`, section 5.14 of its kind).
//!
//! # Idea
//! Each request under way has a *slot*: one buffer shared with the device, whose first
//! half takes the request and whose second half the reply. The slot's number is the
//! request's tag. A request is one chain: the message to read, the room to write.
//! A reply is copied out of shared memory once, into a scratch buffer, and decoded
//! there: what was checked can not change any more.
//!
//! Slots get their memory when they are first used, so a quiet volume costs little.
//!
//! # Invariant
//! A slot's buffer is not touched between its submission and its completion, and the
//! device is reset before buffers are dropped.
//!
//! Not here: the protocol (`ninep`), waiting, files (the kernel).
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod slot;
mod volume;

pub use volume::Virtio9p;
