//! What a program is told of a catalogue's refusals.

use vsa::OpenError;

/// In the kernel's words.
pub fn error_of(error: vsa::Error) -> sync::Error {
    match error {
        vsa::Error::Disk => sync::Error::Io,
        vsa::Error::NotFound => sync::Error::NotFound,
        vsa::Error::NotOwner => sync::Error::NotPermitted,
        vsa::Error::Exists => sync::Error::Exists,
        vsa::Error::BadName | vsa::Error::Empty => sync::Error::Invalid,
        vsa::Error::NoSpace => sync::Error::NoSpace,
        vsa::Error::TooFragmented => sync::Error::FileTooLarge,
        vsa::Error::OverQuota => sync::Error::OverQuota,
        vsa::Error::CatalogueFull => sync::Error::TooManyFilesInSystem,
    }
}

/// The same of a disk that gets a catalogue.
pub fn error_of_opening(error: OpenError) -> sync::Error {
    match error {
        OpenError::Disk => sync::Error::Io,
        OpenError::Shape | OpenError::Refused(_) => sync::Error::Invalid,
    }
}
