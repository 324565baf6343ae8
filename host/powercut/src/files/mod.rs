//! Sequences of operations on two files in two directories, and what may be left of them.
//!
//! All sequences up to a length are run on a disk that remembers its writes and flushes
//! ([`sequence`]); each image that a cut of the power may leave is mounted, and judged twice:
//!
//! - **Sound**: by [`image::judge`](crate::image::judge), and samples by `e2fsck -fn`.
//! - **Right** ([`oracle`]): the names, sizes and bytes are those of *some* moment not before the last
//!   promise, for transactions are whole. Bytes that were written over in place may be newer, sector
//!   by sector; there is never a byte that this file did not have at its place.

pub mod model;
pub mod operation;
pub mod oracle;
pub mod scene;
pub mod sequence;
pub mod walk;
