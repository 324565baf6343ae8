//! ext4 on disks: `mount -t ext4 /dev/vda1 /mnt`.
//!
//! The file system itself is `core/ext4`; this binds it to disks, to names and to programs' memory.
//!
//! - `volume`: what is mounted. One lock ([`volume::Shared::with`]) is around all of it; it is held while
//!   the disk reads, and never while a program's memory is touched.
//! - `commits`: fsync(2) commits and flushes without that lock, one for all that wait.
//! - `node`: inodes. There is one node for each inode that somebody knows; an inode without names
//!   goes when its node does.
//! - `find`: the disk on which an image is.
//! - `file`: an inode as programs use it, by its pages (`kernel_pagecache`).
//! - `data`: bytes between pages and the disk. What is written gets its place when it is brought
//!   down, by fsync(2) and its like or by the flusher; room is promised to it before.
//! - `direct`: the same between the program's own pages and the disk (O_DIRECT).
//! - `disk`: the trait that `core/ext4` asks for.
//!
//! Lock order: a file's locks (`kernel_pagecache`), then the turn (`commits`), then the volume's lock, then spin locks.
//!
//! A disk that is mounted twice is one file system, as with Linux.
//!
//! Not here: times of reads (every mount is `noatime`), extended attributes.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod commits;
mod data;
mod direct;
mod disk;
mod errors;
mod file;
mod find;
mod node;
mod volume;

use alloc::sync::Arc;

use sync::Result;
use vfs::FileSystem;
use vfs::kinds::{self, Kind};

pub use find::node_of;

/// The options of mount(2) that Linux's ext4 knows and that change nothing here.
const OPTIONS: &[&str] = &[
    "acl",
    "noacl",
    "user_xattr",
    "nouser_xattr",
    "barrier",
    "nobarrier",
    "data",
    "errors",
    "commit",
    "nodiscard",
    "delalloc",
    "nodelalloc",
];

/// Makes the kind known to mount(2). Once, at boot.
pub fn init() {
    kinds::register(Kind {
        name: "ext4",
        nodev: false,
        options: OPTIONS,
        make,
    });
}

/// The file system on the disk whose node is `source`.
fn make(source: &[u8], _options: &[u8]) -> Result<Arc<dyn FileSystem>> {
    Ok(volume::mount(source)?)
}
