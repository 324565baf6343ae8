//! Container images: where they come from, the store of them, and the disk that each becomes.
//!
//! # Problem
//! Programs come as images: a stack of tar archives that whoever unpacks them as root, one over the other, turns
//! into a root file system, and a document that says how to start the program in it. We are not root, and trust
//! nobody who makes images.
//!
//! # The way of an image
//! ```text
//! reference   where it is: oci:FOLDER:TAG, docker-archive:FILE, a name of the store
//! source      gives blobs by their digests
//! platform    index -> manifest -> configuration, for linux/amd64
//! store       keeps blobs, compared with their digests, and names
//! layer       an archive's entries, their paths split and checked
//! tree        the entries of all layers merged, in memory
//! root        the tree as an ext4 file system, by core/ext4, with owners that we are not
//! accounts    who the program is, by the image's own /etc/passwd
//! ```
//!
//! # Invariants
//! - No byte of an image is used before its digest was compared: documents when they are read, layers when they are
//!   copied and again as they are unpacked.
//! - No name of an image becomes a name of the host: blobs are called by their digests, and files exist in the disk's file system only.
//! - What fails leaves nothing behind but whole blobs that other images use.
//!
//! Memory grows with the number of an image's files, never with their bytes.
//!
//! Not here: running (`host/cli`), signatures, building.

#![forbid(unsafe_code)]

mod accounts;
mod digest;
mod disk;
mod document;
mod error;
mod layer;
mod platform;
mod reference;
mod root;
mod source;
mod store;
mod tree;

pub use accounts::Account;
pub use digest::Digest;
pub use document::{Configuration, Descriptor, Manifest, Platform, Process, RootFs};
pub use error::{Error, Result};
pub use reference::{Name, Reference, Remote};
pub use store::{Image, Listed, Root, Store};

/// What takes time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Blobs come into the store; counted in bytes.
    Copying,
    /// Layers are read for what they hold; counted in layers.
    Reading,
    /// Files are written to the disk; counted in files.
    Writing,
    /// The host's disk takes it.
    Flushing,
}

/// Hears how far something is: so much of so much.
pub type Progress<'a> = &'a mut dyn FnMut(Stage, u64, u64);
