//! Why an image is not to be had: each a sentence with the way out.

use std::io;
use std::path::PathBuf;

/// What keeps an image from being found, stored or unpacked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A digest that is none of SHA-256.
    #[error("{text:?} is not a SHA-256 digest, and no other is supported.")]
    UnknownDigest {
        /// What stands there.
        text: String,
    },
    /// A reference that cannot be read.
    #[error("{text:?} names no image: {form}.")]
    BadReference {
        /// What was typed.
        text: String,
        /// What would do.
        form: &'static str,
    },
    /// There is no such folder, file or image.
    #[error("There is no image {name}: {way_out}.")]
    NoSuchImage {
        /// What was asked for.
        name: String,
        /// What to do.
        way_out: String,
    },
    /// A source with several images.
    #[error("{origin} holds several images, so name one of them after a colon: {tags}.")]
    SeveralImages {
        /// The folder or file.
        origin: String,
        /// What it holds.
        tags: String,
    },
    /// No image for this processor.
    #[error(
        "The image {name} is for {has}, and machines are linux/amd64: use an image that is made for it."
    )]
    WrongPlatform {
        /// The image.
        name: String,
        /// What it is for.
        has: String,
    },
    /// What the source says of itself cannot be read.
    #[error("{origin} is no image: {reason}.")]
    NotAnImage {
        /// The folder, file or registry.
        origin: String,
        /// Why not.
        reason: String,
    },
    /// A blob that is named and not there.
    #[error("{origin} lacks the blob {digest}: copy or pull the image again.")]
    BlobMissing {
        /// The folder, file or registry.
        origin: String,
        /// The blob.
        digest: String,
    },
    /// A blob that is another.
    #[error(
        "The blob {digest} of {origin} is damaged ({found}), and nothing of it is kept: copy or pull the image again."
    )]
    BlobDamaged {
        /// The folder, file or registry.
        origin: String,
        /// What it should be.
        digest: String,
        /// What it is.
        found: String,
    },
    /// A layer that cannot be unpacked.
    #[error("The layer {layer} cannot be unpacked: {reason}. The image has to be made again.")]
    BadLayer {
        /// Its digest.
        layer: String,
        /// Why not.
        reason: String,
    },
    /// `USER` is not in the image.
    #[error("The image has no {what} {name}: give a number, or another with -u.")]
    UnknownUser {
        /// "user" or "group".
        what: &'static str,
        /// The name.
        name: String,
    },
    /// An image that says nothing of its program.
    #[error("The image {name} names no program to run: give one after its name.")]
    NoProgram {
        /// The image.
        name: String,
    },
    /// A machine runs on it.
    #[error(
        "The image {name} is used by a machine: `sietch ps` lists those that run, `sietch stop` ends one."
    )]
    InUse {
        /// The image.
        name: String,
    },
    /// The host's disk is full.
    #[error(
        "There is no room left in {}: free some, `sietch rmi` an image, or set XDG_DATA_HOME to a folder elsewhere.",
        folder.display()
    )]
    NoRoom {
        /// Where images are kept.
        folder: PathBuf,
    },
    /// mke2fs complains.
    #[error("mke2fs failed: {said}.")]
    Mke2fs {
        /// Its last words.
        said: String,
    },
    /// The registry does not do what is asked.
    #[error("The registry {host} says {said}: {way_out}.")]
    Registry {
        /// The registry.
        host: String,
        /// What it says.
        said: String,
        /// What to do.
        way_out: &'static str,
        /// Whether it may say something else in a moment.
        is_passing: bool,
    },
    /// A registry that ends in the middle of an answer, however often it is asked.
    #[error(
        "The registry {host} ends in the middle of {what} ({reason}): try again, as what came whole is kept."
    )]
    Interrupted {
        /// The registry.
        host: String,
        /// What it was to send.
        what: String,
        /// How it ended.
        reason: String,
    },
    /// The store's list of names.
    #[error(
        "The list of images {} is damaged ({reason}): remove it, and pull or build its images again.",
        path.display()
    )]
    ListDamaged {
        /// The file.
        path: PathBuf,
        /// Why it cannot be read.
        reason: String,
    },
    /// Something stands in the store where a file or a folder of it should be.
    #[error("{} cannot be used: {source}; remove it, and it is made anew.", path.display())]
    Misplaced {
        /// The place.
        path: PathBuf,
        /// What is wrong with it.
        source: io::Error,
    },
    /// A file that the user's limits do not allow.
    #[error(
        "{} would be larger than files may be here: `ulimit -f unlimited` lifts that limit.",
        path.display()
    )]
    FileTooLarge {
        /// The file.
        path: PathBuf,
    },
    /// A file that cannot be read or written.
    #[error("{} cannot be used: {source}.", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// What functions here return.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Wraps an I/O error with the path that it befell; a full disk has a sentence of its own, and so has an error of
    /// ours that came through a reader.
    pub(crate) fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| match source.downcast::<Self>() {
            Ok(own) => own,
            Err(source) => Self::of_file(path, source),
        }
    }

    /// The same for a file or folder of the store's own, which may be removed.
    pub(crate) fn own(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| match source.kind() {
            io::ErrorKind::IsADirectory
            | io::ErrorKind::NotADirectory
            | io::ErrorKind::AlreadyExists => Self::Misplaced { path, source },
            _ => Self::of_file(path, source),
        }
    }

    fn of_file(path: PathBuf, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::NoRoom {
                folder: path.parent().unwrap_or(&path).into(),
            },
            io::ErrorKind::FileTooLarge => Self::FileTooLarge { path },
            _ => Self::File { path, source },
        }
    }

    /// Whether it is a registry's, and the same question may be answered otherwise later.
    pub fn is_of_registry(&self) -> bool {
        matches!(self, Self::Registry { .. } | Self::Interrupted { .. })
    }

    /// Whether it is worthwhile to ask again at once.
    pub(crate) fn is_passing(&self) -> bool {
        match self {
            Self::Registry { is_passing, .. } => *is_passing,
            Self::Interrupted { .. } => true,
            _ => false,
        }
    }
}
