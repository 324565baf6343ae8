//! Extent trees: which blocks of the disk a file's blocks are.
//!
//! A B+ tree of at most five levels whose root, of four entries, is in the inode. A key is the
//! first logical block of what is below it; keys of inner nodes are exact, as e2fsck wants them.
//!
//! - `lookup`: from a block of the file to the disk; the last answer is remembered.
//! - `insert`: another extent; a full node is split, a full root grows a level.
//! - `remove`: a range of the file loses its blocks, or what is reserved becomes written.
//!
//! Changes are made to an [`Inode`](crate::layout::inode::Inode) in hand, whose root may change
//! with them: the caller stores it.

mod insert;
mod lookup;
mod remove;

pub use lookup::{Mapping, Run};
