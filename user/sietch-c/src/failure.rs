//! Why a call failed, in the numbers of errno(3); negative, as C has them here.

use std::ffi::c_int;
use std::io::{self, ErrorKind};

use posix::Errno;
use sietch_io::Error;

/// A number of errno(3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Failure(c_int);

/// What a call ends with.
pub type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    /// An argument that cannot be.
    pub const INVALID: Self = Self(libc::EINVAL);
    /// The name is dead.
    pub const BAD_NAME: Self = Self(libc::EBADF);
    /// No memory, or too much of something.
    pub const NO_BUFFERS: Self = Self(libc::ENOBUFS);
    /// More bytes than there is room for.
    pub const TOO_LONG: Self = Self(libc::EMSGSIZE);
    /// An address of another family.
    pub const BAD_FAMILY: Self = Self(libc::EAFNOSUPPORT);

    /// As it is returned.
    pub fn number(self) -> c_int {
        -self.0
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self(Errno::from(error).number())
    }
}

impl From<&io::Error> for Failure {
    fn from(error: &io::Error) -> Self {
        Self(match (error.raw_os_error(), error.kind()) {
            (Some(number), _) => number,
            (None, ErrorKind::InvalidInput) => libc::EINVAL,
            (None, ErrorKind::Unsupported) => libc::EOPNOTSUPP,
            (None, ErrorKind::NetworkDown) => libc::ENETDOWN,
            (None, ErrorKind::NotFound) => libc::ENODEV,
            (None, ErrorKind::OutOfMemory) => libc::ENOMEM,
            (None, _) => libc::EIO,
        })
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::from(&error)
    }
}

/// Zero, or why not.
pub fn done(result: Result<()>) -> c_int {
    number(result.map(|()| 0))
}

/// A small number, or why not.
pub fn number(result: Result<c_int>) -> c_int {
    result.unwrap_or_else(Failure::number)
}

/// A number of bytes or pieces, or why not.
pub fn count(result: Result<usize>) -> isize {
    match result {
        Ok(count) => isize::try_from(count).unwrap_or(isize::MAX),
        Err(failure) => failure.number() as isize,
    }
}
