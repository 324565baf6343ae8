//! The structures on the disk: where their fields lie, and which values are legal.
//!
//! Numbers are little-endian but for the journal's. Names are those of e2fsprogs and of Linux's
//! documentation of the format.

pub(crate) mod attributes;
pub(crate) mod dirent;
pub(crate) mod extent;
pub(crate) mod features;
pub(crate) mod group;
pub(crate) mod index;
pub(crate) mod inode;
pub(crate) mod superblock;
