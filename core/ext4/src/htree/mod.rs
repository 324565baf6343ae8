//! Indexed directories: a tree of hashes over the blocks of entries.
//!
//! The first block has `.` and `..` and the root of the index, other index blocks look like unused
//! room; leaves are ordinary blocks of entries whose names' hashes lie in a range. To ext2 all of
//! it is a linear directory.
//!
//! - `hash`: the hash of a name. The blocks of the index are in `layout::index`.
//! - `search`: from a hash to the leaf, and on to the next; names whose hashes are equal may be in
//!   leaves that follow each other, whose ranges then say so by their lowest bit.
//! - `insert`: a full leaf is split at a hash, a full node in the middle, a full root grows a level.
//!
//! Leaves are never merged: an indexed directory does not become smaller, as with Linux.

pub(crate) mod hash;
mod insert;
mod search;
