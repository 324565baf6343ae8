//! The FUSE protocol, the kernel's side: a file system that somebody else serves.
//!
//! # Problem
//! A host shares a folder with the machine as it is: owners, modes, links, devices and
//! extended attributes are those of its inodes. Requests and replies are small messages over
//! any channel; many may be under way at once. The server may be buggy or hostile.
//!
//! # Idea
//! Two pure pieces, without I/O and without waiting:
//! - [`Call`] (who asks what of which node) and [`Reply`] are the messages. What the server
//!   sends is decoded by the request that it answers, with every length checked; data is
//!   borrowed, not copied.
//! - [`Client`] hands out tags, remembers what each asked for, and refuses a reply that
//!   answers something else or brings more than was asked for.
//!
//! A [`Channel`] is a client with a transport: submit a call, complete replies by tag. Whoever
//! wants to block on a tag does so above it.
//!
//! ```text
//! Init                             once; the most bytes of a write are agreed on
//! Lookup(node, name) → Entry       a node is named, and counted once more by the server
//! Getattr/Setattr/...(node)        and used
//! Open(node) → handle              a file is opened, read and written by its handle
//! Release(handle), BatchForget     and forgotten, as often as it was counted
//! ```
//!
//! A request is `len[4] opcode[4] unique[8] node[8] uid[4] gid[4] pid[4] pad[4] body`, a reply
//! `len[4] error[4] unique[8] body`, little-endian. The numbers are those of Linux's
//! `include/uapi/linux/fuse.h`, version 7.31.
//!
//! Not here: caching, names of errors (a [`Reply::Error`] carries Linux's number), transports
//! (`drivers/virtio-fs`); READDIRPLUS, locks, ioctls, polls, DAX.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod attributes;
mod body;
mod channel;
mod client;
mod reply;
mod request;

pub use attributes::{Attributes, Entry, FileSystemUsage, SetAttributes, SetTime, Time};
pub use channel::Channel;
pub use client::{Client, ReplyError, SubmitError, Tag, reply_bytes};
pub use reply::{DirEntries, DirEntry, DirList, Reply};
pub use request::{Call, Caller, Forget, Request, What};

/// The server's number of a node, and of the root of what it serves.
pub type NodeId = u64;
/// The root's.
pub const ROOT: NodeId = 1;
/// The protocol's version that we speak.
pub const VERSION: (u32, u32) = (7, 31);
/// Bytes in front of a reply's body.
pub const REPLY_HEADER_BYTES: usize = 16;
/// A name is no longer (Linux's NAME_MAX), of extended attributes too.
pub const NAME_BYTES_MAX: usize = 255;
/// A symbolic link's text is shorter (Linux's PATH_MAX).
pub const TARGET_BYTES_MAX: usize = 4096;
