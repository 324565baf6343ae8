//! An image of ext4, read and judged by other code than the one that is tested.
//!
//! `e2fsck -fn` is the judge that counts, but it wants a file and a process for each image. This one
//! looks at hundreds of thousands: who owns which block, what bitmaps and counts say, which names lead
//! where. It knows extents and no older maps, and images without a `resize_inode`.
//!
//! Not here: checksums, which the file system has just looked at, and times.

mod accounts;
mod raw;
mod tree;

pub use tree::{File, Tree};

use crate::medium::Medium;

/// The files of an image that was unmounted, if it is sound.
pub fn judge(medium: &Medium) -> Result<Tree, String> {
    let raw = raw::Raw::new(medium)?;
    let tree = tree::read(&raw)?;
    accounts::check(&raw, &tree)?;
    Ok(tree)
}
