//! What programs are told.

use ext4::MountError;
use mach::klog;
use sync::Error;

/// Of an operation that failed.
pub(super) fn error_of(error: ext4::Error) -> Error {
    match error {
        ext4::Error::Device | ext4::Error::Corrupt(_) => Error::Io,
        ext4::Error::NotFound => Error::NotFound,
        ext4::Error::Exists => Error::Exists,
        ext4::Error::NotDirectory => Error::NotDirectory,
        ext4::Error::IsDirectory => Error::IsDirectory,
        ext4::Error::NotEmpty => Error::NotEmpty,
        ext4::Error::NoSpace => Error::NoSpace,
        ext4::Error::FileTooLarge => Error::FileTooLarge,
        ext4::Error::NameTooLong => Error::NameTooLong,
        ext4::Error::TooManyLinks => Error::TooManyLinks,
        ext4::Error::ReadOnly => Error::ReadOnly,
        ext4::Error::Invalid => Error::Invalid,
        ext4::Error::Unsupported | ext4::Error::TooLarge => Error::Unsupported,
        ext4::Error::BeyondEnd => Error::NoSuchDevice,
        ext4::Error::Busy => Error::Busy,
        ext4::Error::OutOfMemory => Error::OutOfMemory,
    }
}

/// Of a mount that failed; the log says why.
pub(super) fn mount_error(source: &[u8], error: &MountError) -> Error {
    let name = source.escape_ascii();
    klog!("ext4: {name} is not mounted: {error:?}");
    match error {
        MountError::Failed(error) => error_of(*error),
        MountError::NeedsRecovery => Error::ReadOnly,
        MountError::NotExt4 | MountError::Feature(_) | MountError::ReadOnlyFeature(_) => {
            Error::Invalid
        }
    }
}
