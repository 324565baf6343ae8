//! Files and their names.
//!
//! Four kinds of object. An [`Inode`] is what a file system provides: a file, a
//! directory, a link, a node. A [`Dentry`] is a name of an inode; dentries form the cache
//! that makes a known path cheap. A [`Mount`] puts a file system into the tree. A
//! [`Path`] is a dentry seen through a mount: a place.
//!
//! - `walk` turns a path into a place, `open` a place into an open file, `names` changes
//!   the tree, `access` says who may do what, `access_times` which reads leave a
//!   trace, `context` where a thread stands.
//! - `file` has open files and the tables of descriptors; `socket` what a file may be asked that is a
//!   socket; `devices` which number opens what.
//! - `pseudo` makes text while it is read (for the crate `procfs`, which shows the system);
//!   file systems that keep something are crates of their own, from `fs-tmp` on.
//! - `locks`, `seals`, `notify` are what programs may put on a file.
//!
//! Lock order: directories' locks (`dentry`), then an inode's own, then spin locks.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod access;
pub mod access_times;
mod attachment;
pub mod attributes;
mod context;
pub mod dentry;
pub mod devices;
pub mod directory;
pub mod extended;
pub mod file;
pub mod inode;
pub mod kinds;
pub mod locks;
mod metadata;
pub mod mount;
pub mod names;
pub mod notify;
mod open;
pub mod pseudo;
pub mod seals;
pub mod set_ids;
pub mod socket;
mod walk;

pub use attachment::Attachment;
pub use context::{Contexts, FsContext, context, find_contexts_by};
pub use dentry::{Dentry, NAME_BYTES_MAX};
pub use inode::{FileSystem, Inode, InodeRef, New, Usage};
pub use metadata::{
    Change, FileType, Metadata, Timestamp, device_number, device_parts, next_device,
};
pub use mount::{Mount, MountFlags, Path, SuperBlock, root};
pub use open::{CreationFlags, HowToOpen, open, open_for_exec, open_path, register_fifo};
pub use walk::{PATH_BYTES_MAX, Spot, Walk, resolve, resolve_spot};
