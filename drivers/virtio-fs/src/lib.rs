//! Folders of the host: FUSE over virtio (VIRTIO 1.2, section 5.11).
//!
//! # Idea
//! Each request under way has a *slot*: one buffer shared with the device, in which the
//! message stands first and the room for the reply follows. A request is one chain: the message
//! to read, the room to write; what has no reply has no room. A reply is copied out of
//! shared memory once, into a scratch buffer, and decoded there: what was checked can not
//! change any more.
//!
//! What gives up nodes goes by the queue of high priority, where no request that waits for
//! the host's disk stands before it; all else by the first queue of requests.
//!
//! Slots get their memory when they are first used, so a quiet folder costs little.
//!
//! # Invariant
//! A slot's buffer is not touched between its submission and its completion, and the
//! device is reset before buffers are dropped.
//!
//! Not here: the protocol (`fuse`), waiting, files (the kernel); several queues of requests,
//! the window of shared memory (DAX), notifications.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod folder;
mod lane;
mod slot;

pub use folder::VirtioFs;
