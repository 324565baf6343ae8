//! A file system in memory: the root (filled from the boot image), /tmp, /run, /dev/shm.
//!
//! A file's pages *are* the page cache: they are shared with every mapping and live as
//! long as the file. Files of the boot image cost nothing at first: their bytes are read
//! where the boot loader put them, and only a page that is written, mapped shared, or
//! not aligned in the image gets memory of its own ([`contents`]).
//!
//! /dev is one of them, with a node for each device ([`devtmpfs`]); files of memfd_create(2) live in
//! a hidden one ([`memfd`]); [`boot`] mounts the tree that the first program finds.
//!
//! Each system has a limit of pages, so that a runaway log ends in ENOSPC and not in
//! the end of all memory.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod boot;
mod contents;
pub mod devtmpfs;
pub mod directory;
pub mod memfd;
mod names;
mod node;
mod options;
mod unpack;

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering};

use base::PAGE_BYTES;
use mm::{self, commit};
use sync::{Error, Result};

use node::Node;

use vfs::inode::Usage;
use vfs::{FileSystem, FileType, Inode, InodeRef, New, next_device};

/// Linux's number of tmpfs (statfs(2)).
const MAGIC: u64 = 0x0102_1994;

/// What the nodes of one file system share.
struct System {
    device: u64,
    pages_max: AtomicU64,
    pages: AtomicU64,
    last_number: AtomicU64,
}

impl System {
    /// Counts one more page, or says that the limit is reached.
    fn charge(&self) -> Result<()> {
        commit::promise(PAGE_BYTES as u64).map_err(|_| Error::NoSpace)?;
        mm::count_pages(1);
        if self.pages.fetch_add(1, Ordering::Relaxed) < self.pages_max.load(Ordering::Relaxed) {
            return Ok(());
        }
        self.release(1);
        Err(Error::NoSpace)
    }

    fn release(&self, pages: u64) {
        self.pages.fetch_sub(pages, Ordering::Relaxed);
        mm::uncount_pages(pages);
        commit::release(pages * PAGE_BYTES as u64);
    }

    fn next_number(&self) -> u64 {
        self.last_number.fetch_add(1, Ordering::Relaxed) + 1
    }
}

/// A file system in memory.
pub struct Tmpfs {
    system: Arc<System>,
    root: Arc<Node>,
    kind: &'static str,
}

impl Tmpfs {
    /// An empty one that takes at most `bytes_max`, whose top has `mode`.
    pub fn new(bytes_max: u64, mode: u32) -> Arc<Self> {
        Self::of_kind("tmpfs", bytes_max, mode)
    }

    /// The same under another name (devtmpfs).
    pub fn of_kind(kind: &'static str, bytes_max: u64, mode: u32) -> Arc<Self> {
        let system = Arc::new(System {
            device: next_device(),
            pages_max: AtomicU64::new(bytes_max / PAGE_BYTES as u64),
            pages: AtomicU64::new(0),
            last_number: AtomicU64::new(0),
        });
        let root = Node::root(&system, mode);
        Arc::new(Self { system, root, kind })
    }

    /// A regular file without a name.
    pub fn nameless(&self, mode: u32, uid: u32, gid: u32) -> Result<InodeRef> {
        let new = New {
            kind: FileType::Regular,
            mode,
            uid,
            gid,
            device: 0,
            target: &[],
        };
        self.root.create_nameless(&new)
    }
}

impl FileSystem for Tmpfs {
    fn kind(&self) -> &'static str {
        self.kind
    }

    fn root(&self) -> InodeRef {
        self.root.clone()
    }

    fn usage(&self) -> Usage {
        let used = self.system.pages.load(Ordering::Relaxed);
        let blocks = self.system.pages_max.load(Ordering::Relaxed);
        Usage {
            magic: MAGIC,
            block_bytes: PAGE_BYTES as u64,
            blocks,
            free_blocks: blocks.saturating_sub(used),
            inodes: 0,
            free_inodes: 0,
        }
    }

    /// The size may change, but not below what is taken.
    fn reconfigure(&self, options: &[u8]) -> Result<()> {
        let Some(bytes_max) = options::size(options) else {
            return Ok(());
        };
        let pages_max = bytes_max? / PAGE_BYTES as u64;
        if pages_max < self.system.pages.load(Ordering::Relaxed) {
            return Err(Error::Invalid);
        }
        self.system.pages_max.store(pages_max, Ordering::Relaxed);
        Ok(())
    }
}
