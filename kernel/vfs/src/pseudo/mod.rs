//! Files whose text is made when they are read: the stuff of /proc and /sys.
//!
//! A [`Table`] lists paths with their generators; the directories between follow from the
//! paths. A [`TextFile`] asks its generator while it is read, for all of a short text or for
//! a piece of a long one; a program that reads it again from offset 0 sees a new one.
//! Any part of the kernel may add paths to a table.

mod directory;
mod link;
mod numbers;
mod reopen;
mod table;
mod text;

pub use crate::file::Text;
pub use directory::Directory;
pub use link::{Link, Target};
pub use numbers::{write_list, write_mask};
pub use table::{Entry, Special, Store, Table};
pub use text::{Generate, GeneratePiece, Take, TextFile};

/// The number of an inode, from the path that leads to it (FNV-1a, never 0).
pub fn number_of(path: &[u8]) -> u64 {
    let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    path.iter().fold(0xcbf2_9ce4_8422_2325, mix) | 1
}
