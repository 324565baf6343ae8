//! What file systems of the host's folders share, whatever protocol they speak (`fs-9p`,
//! `fs-virtiofs`).
//!
//! - `remote`: what a protocol says of an inode, which is all that differs between the file systems
//! - `node`: an inode as the kernel has it; `file`: as programs read, write and map it; `list`: its names; `seen_mode`
//! - `nodes`: inodes by their identity at the host, so that a file has one set of pages
//! - `bytes`: a file's bytes, piece by piece, below its pages (`kernel_pagecache`)
//! - `link`: requests under way on a device, and the threads that sleep until they are answered
//! - `links`: the devices of the machine, and what each has served (`/proc/volumes`)
//! - `answers`: errors in our words, names that listings show, times
//!
//! Others may change the folder at any time, so nothing is remembered that the host can be asked for: names and attributes
//! are looked up each time, reads go to the host, writes go through to it before they return. Only pages that a program has
//! mapped are kept: reads and writes see them, `msync`, `fsync` and `close` bring them home. Of a folder that
//! [nobody changes](Remote::is_immutable) names and all pages are kept, and files are read ahead.
//!
//! A file that is open keeps an open file on the host, and so survives its removal.
//!
//! Lock order: a page cache's, then what the protocol's inode has, then the spin locks, of which none is held while another
//! is taken, nor while a thread waits.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod answers;
mod bytes;
mod file;
mod link;
mod links;
mod list;
mod node;
mod nodes;
mod remote;
mod seen_mode;

pub use answers::{error_of, timestamp};
pub use bytes::Bytes;
pub use link::{Carrier, Link, Refused, Replies};
pub use links::{attach, figures};
pub use list::Name;
pub use node::Node;
pub use nodes::Nodes;
pub use remote::{Holes, Identity, Remote};
