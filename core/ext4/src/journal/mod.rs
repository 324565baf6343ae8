//! The journal: jbd2's log in a file of the image.
//!
//! # Problem
//! Blocks of metadata belong together, and a disk that loses power has written some of them.
//!
//! # Idea
//! A commit writes copies of all blocks of a transaction into the log, and then one commit block.
//! What is in the log as a whole is brought to its place after a crash ([`recovery`]); what is
//! not, has never happened. Blocks are written to their own places at leisure, by a checkpoint,
//! and only then may the log be written over.
//!
//! ```text
//! revoke* (descriptor, copies of blocks)* | flush | commit block, forced     a commit
//! blocks to their places | flush | log superblock with the new tail, forced  a checkpoint
//! ```
//! File data that a transaction makes visible was written before its commit began, so the flush
//! before the commit block covers it: that is all of *ordered* mode.
//!
//! A *revoke* record says that a block was freed: older copies of it in the log are not replayed,
//! for it may be a file's data by now.
//!
//! # Invariants
//! - **Log before place**: a block is written to its place only after its commit block is on the
//!   medium.
//! - **Place before tail**: the tail passes a transaction only after its blocks were flushed.
//!
//! A checkpoint here always takes all that is committed and leaves an empty log: the list of
//! what waits has no order to keep.
//!
//! Not here: fast commits, external journals, `data=journal`.

mod format;
mod log;
pub(crate) mod recovery;

pub(crate) use log::{Laid, Log};
