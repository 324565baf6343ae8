//! The numbers that a program finds in `errno`: those that the kernel's sockets give for the same refusal of
//! the same stack (`kernel/net/src/refusal.rs`, `kernel/linux-abi/src/errno.rs`).

use epoll::Refusal;
use inet::Error;

/// A number of errno(3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Errno(i32);

/// What a call ends with.
pub type Result<T> = core::result::Result<T, Errno>;

impl Errno {
    /// It would have to wait.
    pub const AGAIN: Self = Self(libc::EAGAIN);
    /// A connection is on its way.
    pub const IN_PROGRESS: Self = Self(libc::EINPROGRESS);
    /// It was on its way before.
    pub const ALREADY: Self = Self(libc::EALREADY);
    /// The number names no socket.
    pub const BAD_NUMBER: Self = Self(libc::EBADF);
    /// It names something else.
    pub const NOT_A_SOCKET: Self = Self(libc::ENOTSOCK);
    /// A wrong argument.
    pub const INVALID: Self = Self(libc::EINVAL);
    /// This kind of socket cannot do that.
    pub const NOT_SUPPORTED: Self = Self(libc::EOPNOTSUPP);
    /// Not by addresses of this family.
    pub const BAD_FAMILY: Self = Self(libc::EAFNOSUPPORT);
    /// The link is gone, or is the parent's.
    pub const NETWORK_DOWN: Self = Self(libc::ENETDOWN);
    /// There is no memory for that.
    pub const NO_BUFFERS: Self = Self(libc::ENOBUFS);
    /// Memory that is not the program's.
    pub const BAD_ADDRESS: Self = Self(libc::EFAULT);
    /// An option that this kind of socket has not.
    pub const NO_OPTION: Self = Self(libc::ENOPROTOOPT);
    /// A request of others.
    pub const NOT_A_TERMINAL: Self = Self(libc::ENOTTY);
    /// A signal came.
    pub const INTERRUPTED: Self = Self(libc::EINTR);
    /// Nobody takes what is sent.
    pub const BROKEN_PIPE: Self = Self(libc::EPIPE);
    /// The number is none that the library can name a socket by, or is its own.
    pub const TOO_MANY: Self = Self(libc::EMFILE);
    /// Too many pieces, or a name that is too long.
    pub const TOO_LONG: Self = Self(libc::EMSGSIZE);

    /// Sockets are a newer library's now: the call begins again, there. No program sees it.
    pub const MOVED: Self = Self(512);

    /// It has no peer.
    pub const NOT_CONNECTED: Self = Self(libc::ENOTCONN);
    /// Its peer, or who had it, is gone.
    pub const CONNECTION_RESET: Self = Self(libc::ECONNRESET);

    /// One that another process has said.
    pub const fn from_number(number: i32) -> Self {
        Self(number)
    }

    /// The number itself.
    pub fn number(self) -> i32 {
        self.0
    }
}

impl From<Error> for Errno {
    fn from(error: Error) -> Self {
        Self(match error {
            Error::BadSocket => libc::EBADF,
            Error::InvalidState => libc::EINVAL,
            Error::WouldBlock => libc::EAGAIN,
            Error::InProgress => libc::EALREADY,
            Error::AlreadyConnected => libc::EISCONN,
            Error::NotConnected => libc::ENOTCONN,
            Error::DestinationRequired => libc::EDESTADDRREQ,
            Error::AddressInUse => libc::EADDRINUSE,
            Error::AddressNotAvailable => libc::EADDRNOTAVAIL,
            Error::NetworkUnreachable => libc::ENETUNREACH,
            Error::HostUnreachable => libc::EHOSTUNREACH,
            Error::ProtocolUnreachable => libc::ENOPROTOOPT,
            Error::HostDown => libc::EHOSTDOWN,
            Error::Protocol => libc::EPROTO,
            Error::Prohibited | Error::BroadcastNotAllowed => libc::EACCES,
            Error::ConnectionRefused => libc::ECONNREFUSED,
            Error::ConnectionReset => libc::ECONNRESET,
            Error::ConnectionAborted => libc::ECONNABORTED,
            Error::BrokenPipe => libc::EPIPE,
            Error::TimedOut => libc::ETIMEDOUT,
            Error::MessageTooLong => libc::EMSGSIZE,
            Error::NoBuffers => libc::ENOBUFS,
        })
    }
}

impl From<Refusal> for Errno {
    fn from(refusal: Refusal) -> Self {
        Self(match refusal {
            Refusal::Exists => libc::EEXIST,
            Refusal::NotFound => libc::ENOENT,
            Refusal::Invalid => libc::EINVAL,
            Refusal::TooDeep => libc::ELOOP,
            Refusal::OutOfMemory => libc::ENOMEM,
        })
    }
}
