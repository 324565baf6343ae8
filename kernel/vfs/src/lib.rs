//! Files and their names.
//!
//! Four kinds of object. An [`Inode`] is what a file system provides: a file, a
//! directory, a link, a node. A [`Dentry`] is a name of an inode; dentries form the cache
//! that makes a known path cheap. A [`Mount`] puts a file system into the tree. A
//! [`Path`] is a dentry seen through a mount: a place.
//!
//! - `walk` turns a path into a place, `open` a place into an open file, `names` changes
//!   the tree, `access` says who may do what, `mount` has the tree itself: dentries, mounts, and where a
//!   thread stands in it.
//! - `absent` notes what was looked for in vain, for whoever packed the program.
//! - `file` has open files and the tables of descriptors; `socket` what a file may be asked that is a
//!   socket; `devices` which number opens what.
//! - `pseudo` makes text while it is read (for the crate `procfs`, which shows the system);
//!   file systems that keep something are crates of their own, from `fs-tmp` on.
//! - `inode` says what a file system provides, and what programs may put on a file: `locks`, `seals`,
//!   `notify`, extended attributes.
//!
//! Lock order: directories' locks (`dentry`), then an inode's own, then spin locks.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod absent;
pub mod access;
pub mod devices;
pub mod file;
pub mod inode;
pub mod mount;
pub mod names;
mod open;
pub mod pseudo;
mod walk;

pub use file::{access_times, directory, socket};
pub use inode::{
    Attachment, Change, FileSystem, FileType, Inode, InodeRef, Metadata, New, Timestamp, Usage,
    attributes, device_number, device_parts, extended, locks, next_device, notify, seals, set_ids,
};
pub use mount::dentry::{self, Dentry, NAME_BYTES_MAX};
pub use mount::{
    Contexts, FsContext, Mount, MountFlags, Path, SuperBlock, context, find_contexts_by, kinds,
    root,
};
pub use open::{CreationFlags, OpenHow, open, open_for_exec, open_path, register_fifo};
pub use walk::{LastComponent, PATH_BYTES_MAX, Walk, look, resolve, resolve_parent};
