//! The cache of names: which inode a name in a directory means.
//!
//! The problem: a walk asks each directory on its way for the next name, and a file system answers
//! slowly. The answers stay true until somebody changes the directory, and that goes through us.
//!
//! The idea: a [`Dentry`] is one name of one inode. A directory's dentry keeps its children,
//! negative answers included, so that a path that was walked once is walked again without asking
//! the file system. A child holds its parent, so whoever holds a dentry can tell its path. A
//! removed name's dentry is detached, not changed: an open file keeps its inode.
//!
//! Invariants: as long as somebody holds a dentry that a directory lists, a look for its name
//! finds that dentry and no other; so locks, mounts and watches that hang on one are met by all.
//! What a directory keeps is what its file system would answer: each question and each change is
//! under the directory's `changing`, from the question to the note of the answer.
//!
//! Some file systems change by themselves (`keeps_names` is false): their names are asked for each
//! time, but for those under a mount, which are *pinned* ([`Dentry::pinned`]).
//!
//! Bounds: a directory that keeps more names than it lately needed drops those that nobody uses,
//! [`KEPT_MAX`] at a time; when memory is short all such names go ([`Dentry::forget_unused`]), and
//! that a name is not there is not noted any more. Whatever may grow is asked for before anything
//! changes, so a change of names never fails half-way ([`Dentry::child_while_locked`]).
//!
//! Lock order: a directory's `changing` (sleeps) is held over every change of its names and every
//! question to the file system; `children`, which readers share, and `place` are short locks, never
//! held together with those of another dentry, and nothing is dropped under them.
//!
//! `tests/random.rs` compares long histories with a plain tree, with memory refused now and then;
//! `tests/model` has `loom` try the orders of looks, changes and shrinking with exactly this code.
//!
//! Not here: walks of paths, rights, mounts, what a file system is.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod dentry;
mod directory;
mod forget;
mod host;
mod look;
mod pin;

pub use dentry::{Dentry, Name};
pub use host::{Guard, Host, Refusal};

/// The longest name in bytes (`NAME_MAX` of Linux).
pub const NAME_BYTES_MAX: usize = 255;
/// Cached names of a directory at which the unused ones are dropped.
pub const KEPT_MAX: usize = 512;
