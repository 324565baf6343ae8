//! The 9P2000.L protocol, client's side: folders of another machine.
//!
//! # Problem
//! A host shares a folder with the machine. Requests and replies are small messages
//! (`size[4] type[1] tag[2] body`, little-endian) over any channel; many may be under way
//! at once and are told apart by their tags. The server may be buggy or hostile.
//!
//! # Idea
//! Three pure pieces, without I/O and without waiting:
//! - [`Request`] and [`Reply`] are the messages. What the server sends is decoded by the
//!   request that it answers, with every length checked; data is borrowed, not copied.
//! - [`Client`] hands out tags, remembers what each asked for, and refuses a reply that
//!   answers something else or brings more than was asked for.
//! - [`Fids`] hands out the numbers by which the client names the server's files.
//!
//! A [`Channel`] is a client with a transport: submit a request, complete replies by
//! tag. Whoever wants to block on a tag does so above it.
//!
//! ```text
//! Version, Attach(fid)                       once; msize is agreed on
//! Walk(fid → newfid), Lopen/Lcreate(newfid)  a file is opened
//! Read/Write/Getattr/...(newfid)             and used
//! Clunk(newfid)                              and forgotten, even if that fails
//! ```
//!
//! Sources: plan9's `intro(5)`, and the description of 9P2000.L in the diod project.
//! Not here: caching, names of errors (a [`Reply::Error`] carries Linux's number),
//! transports (`drivers/virtio-9p`).
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod attributes;
mod channel;
mod client;
mod fids;
mod reply;
mod request;

pub use attributes::{Attributes, FileSystemUsage, Qid, SetAttributes, SetTime, Time};
pub use channel::Channel;
pub use client::{Client, ReplyError, SubmitError, Tag};
pub use fids::{Fid, Fids, NO_FID};
pub use reply::{DirEntries, DirEntry, DirList, Lock, Reply, WalkQids};
pub use request::{Kind, LockKind, Request, WALK_NAMES_MAX};

/// Bytes in front of each message's body.
pub const HEADER_BYTES: usize = 7;
/// Bytes of a write request around its data; a read's reply has fewer.
pub const IO_HEADER_BYTES: usize = 24;
/// The protocol's name in `Version`.
pub const VERSION: &[u8] = b"9P2000.L";
