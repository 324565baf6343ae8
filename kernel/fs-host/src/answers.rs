//! What a host says, in our words.

use sync::Error;
use vfs::Timestamp;

/// A name is no longer (Linux's NAME_MAX).
const NAME_BYTES_MAX: usize = 255;

/// The error that Linux's number means; what a file system does not say is `Io`.
pub fn error_of(number: u32) -> Error {
    match number {
        1 => Error::NotPermitted,
        2 => Error::NotFound,
        6 => Error::NoSuchDevice,
        7 => Error::ArgumentsTooLong,
        9 => Error::BadFile,
        12 => Error::OutOfMemory,
        13 => Error::AccessDenied,
        16 => Error::Busy,
        17 => Error::Exists,
        18 => Error::CrossDevice,
        20 => Error::NotDirectory,
        21 => Error::IsDirectory,
        22 => Error::Invalid,
        23 | 24 => Error::TooManyFilesInSystem,
        26 => Error::TextBusy,
        27 => Error::FileTooLarge,
        28 => Error::NoSpace,
        30 => Error::ReadOnly,
        31 => Error::TooManyLinks,
        34 => Error::OutOfRange,
        36 => Error::NameTooLong,
        38 => Error::NotImplemented,
        39 => Error::NotEmpty,
        40 => Error::TooManySymlinks,
        61 => Error::NoData,
        95 => Error::Unsupported,
        122 => Error::OverQuota,
        _ => Error::Io,
    }
}

/// Whether a name is one that listings of an inode show.
pub(crate) fn is_listed(name: &[u8]) -> bool {
    let is_special = matches!(name, b"" | b"." | b"..");
    let has_separator = name.iter().any(|byte| matches!(byte, b'/' | 0));
    !is_special && !has_separator && name.len() <= NAME_BYTES_MAX
}

/// A time of the host's; one that has more than a second's nanoseconds is cut off.
pub fn timestamp(seconds: u64, nanos: u64) -> Timestamp {
    const NANOS_MAX: u64 = 999_999_999;
    Timestamp {
        seconds: seconds as i64,
        nanos: nanos.min(NANOS_MAX) as u32,
    }
}
