//! What file systems of the host's folders share, whatever protocol they speak (`fs-9p`,
//! `fs-virtiofs`).
//!
//! - `link`: requests under way on a device, and the threads that sleep until they are answered
//! - `links`: the devices of the machine, and what each has served (`/proc/volumes`)
//! - `nodes`: inodes by their identity at the host, so that a file has one set of pages
//! - `list`: the names of a directory
//! - `seen_mode`: whether a file may have set-id bits
//! - `bytes`: a file's bytes, piece by piece, below its pages (`kernel_pagecache`)
//! - `answers`: errors in our words, names that listings show, times
//!
//! Others change the host's files, so nothing is remembered here that the host can be asked for.
//!
//! Lock order: none of these locks is held while another is taken, nor while a thread waits.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod answers;
mod bytes;
mod link;
mod links;
mod list;
mod nodes;
mod seen_mode;

pub use answers::{error_of, timestamp};
pub use bytes::{Bytes, bring, fetch, fill, store};
pub use link::{Carrier, Link, Refused, Replies};
pub use links::{attach, figures};
pub use list::{Name, list};
pub use nodes::Nodes;
pub use seen_mode::SeenMode;
