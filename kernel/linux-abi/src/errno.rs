//! The only place that knows Linux's error numbers.

use linux_raw_sys::errno;
use sync::{Error, Restart};

/// A Linux error number, 1 to 4095, held as a program sees it in RAX: negative. A result with
/// it so fits two registers, and the second is the answer, whatever the first says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Errno(isize);

macro_rules! numbers {
    ($($name:ident)*) => {
        impl Errno {
            $(
                #[doc = concat!("Linux's ", stringify!($name), ".")]
                pub const $name: Self = Self(-(errno::$name as isize));
            )*

            /// Its name, for people.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)*
                    Self(ERESTARTSYS) => "ERESTARTSYS",
                    _ => "ERESTARTNOHAND",
                }
            }
        }
    };
}

numbers! {
    E2BIG EACCES EADDRINUSE EADDRNOTAVAIL EAFNOSUPPORT EAGAIN EALREADY EBADF EBADFD EBUSY ECANCELED ECHILD
    ECONNABORTED ECONNREFUSED ECONNRESET EDEADLK EDESTADDRREQ EDOM EDQUOT EEXIST EFAULT EFBIG EHOSTDOWN EHOSTUNREACH
    EIDRM EINPROGRESS EINTR EINVAL EIO EISCONN EISDIR ELOOP EMFILE EMLINK EMSGSIZE ENAMETOOLONG ENOMSG
    ENETDOWN ENETUNREACH ENFILE ENOBUFS ENODATA ENODEV ENOENT ENOEXEC ENOLCK ENOMEM ENOPROTOOPT
    ENOSPC ENOSYS ENOTCONN ENOTDIR ENOTEMPTY ENOTSOCK ENOTTY ENXIO EOPNOTSUPP EOVERFLOW
    EOWNERDEAD EPERM EPFNOSUPPORT EPIPE EPROTO EPROTONOSUPPORT EPROTOTYPE ERANGE EROFS ESHUTDOWN ESOCKTNOSUPPORT
    ESPIPE ESRCH ETIME ETIMEDOUT ETOOMANYREFS ETXTBSY EXDEV
}

/// Numbers that never leave the kernel: what to do with a call that a signal ended
/// (include/linux/errno.h).
const ERESTARTSYS: isize = -512;
const ERESTARTNOHAND: isize = -514;

impl Errno {
    /// No error: the call has put the answer into the frame, with all registers.
    pub const IN_FRAME: Self = Self(mach::trap::IN_FRAME as isize);
}

impl Errno {
    /// The number itself.
    pub fn number(self) -> u16 {
        self.0.unsigned_abs() as u16
    }

    /// As the program sees it in RAX.
    pub fn encode(self) -> u64 {
        self.0 as u64
    }
}

/// Whether the RAX that a call leaves is an error's.
pub fn is_error(rax: u64) -> bool {
    rax as isize > -(ERRNO_MAX as isize) - 1 && (rax as isize) < 0
}

/// The highest number of an error (Linux's MAX_ERRNO).
const ERRNO_MAX: u16 = 4095;

/// The RAX of a call that fails with a number that somebody else chose; 0 succeeds.
pub fn answer(number: u16) -> u64 {
    u64::from(number.min(ERRNO_MAX)).wrapping_neg()
}

/// For the RAX of a call that a signal ended: the rule for its restart.
pub fn restart(rax: u64) -> Option<Restart> {
    match rax as isize {
        ERESTARTSYS => Some(Restart::IfAsked),
        ERESTARTNOHAND => Some(Restart::IfNoHandler),
        _ => None,
    }
}

impl From<Error> for Errno {
    fn from(error: Error) -> Self {
        match error {
            Error::Interrupted(Restart::IfAsked) => Self(ERESTARTSYS),
            Error::Interrupted(Restart::IfNoHandler) => Self(ERESTARTNOHAND),
            Error::Interrupted(Restart::Never) => Self::EINTR,
            Error::NotPermitted => Self::EPERM,
            Error::AccessDenied => Self::EACCES,
            Error::NotFound => Self::ENOENT,
            Error::NoSuchProcess => Self::ESRCH,
            Error::Io => Self::EIO,
            Error::NoSuchDevice => Self::ENXIO,
            Error::ArgumentsTooLong => Self::E2BIG,
            Error::NotExecutable => Self::ENOEXEC,
            Error::BadFile => Self::EBADF,
            Error::NoChild => Self::ECHILD,
            Error::WouldBlock => Self::EAGAIN,
            Error::OutOfMemory => Self::ENOMEM,
            Error::BadAddress => Self::EFAULT,
            Error::Busy => Self::EBUSY,
            Error::Exists => Self::EEXIST,
            Error::CrossDevice => Self::EXDEV,
            Error::WrongDevice => Self::ENODEV,
            Error::NotDirectory => Self::ENOTDIR,
            Error::IsDirectory => Self::EISDIR,
            Error::Invalid => Self::EINVAL,
            Error::TooManyFilesInSystem => Self::ENFILE,
            Error::TooManyFiles => Self::EMFILE,
            Error::NotTerminal => Self::ENOTTY,
            Error::TextBusy => Self::ETXTBSY,
            Error::FileTooLarge => Self::EFBIG,
            Error::NoSpace => Self::ENOSPC,
            Error::NotSeekable => Self::ESPIPE,
            Error::ReadOnly => Self::EROFS,
            Error::OverQuota => Self::EDQUOT,
            Error::TooManyLinks => Self::EMLINK,
            Error::BrokenPipe => Self::EPIPE,
            Error::OutOfDomain => Self::EDOM,
            Error::OutOfRange => Self::ERANGE,
            Error::Deadlock => Self::EDEADLK,
            Error::NameTooLong => Self::ENAMETOOLONG,
            Error::NoLocks => Self::ENOLCK,
            Error::NotImplemented => Self::ENOSYS,
            Error::NotEmpty => Self::ENOTEMPTY,
            Error::TooManySymlinks => Self::ELOOP,
            Error::Overflow => Self::EOVERFLOW,
            Error::NoData => Self::ENODATA,
            Error::TimedOut => Self::ETIMEDOUT,
            Error::NotSocket => Self::ENOTSOCK,
            Error::DestinationRequired => Self::EDESTADDRREQ,
            Error::MessageTooLong => Self::EMSGSIZE,
            Error::WrongProtocolType => Self::EPROTOTYPE,
            Error::NoSuchOption => Self::ENOPROTOOPT,
            Error::ProtocolUnsupported => Self::EPROTONOSUPPORT,
            Error::SocketTypeUnsupported => Self::ESOCKTNOSUPPORT,
            Error::Unsupported => Self::EOPNOTSUPP,
            Error::FamilyUnsupported => Self::EAFNOSUPPORT,
            Error::AddressInUse => Self::EADDRINUSE,
            Error::AddressNotAvailable => Self::EADDRNOTAVAIL,
            Error::NetworkDown => Self::ENETDOWN,
            Error::NetworkUnreachable => Self::ENETUNREACH,
            Error::ConnectionAborted => Self::ECONNABORTED,
            Error::ConnectionReset => Self::ECONNRESET,
            Error::NoBuffers => Self::ENOBUFS,
            Error::IsConnected => Self::EISCONN,
            Error::NotConnected => Self::ENOTCONN,
            Error::ShutDown => Self::ESHUTDOWN,
            Error::ConnectionTimedOut => Self::ETIMEDOUT,
            Error::ConnectionRefused => Self::ECONNREFUSED,
            Error::Removed => Self::EIDRM,
            Error::NoMessage => Self::ENOMSG,
            Error::TooManyReferences => Self::ETOOMANYREFS,
            Error::HostUnreachable => Self::EHOSTUNREACH,
            Error::HostDown => Self::EHOSTDOWN,
            Error::Protocol => Self::EPROTO,
            Error::AlreadyInProgress => Self::EALREADY,
            Error::InProgress => Self::EINPROGRESS,
            Error::OwnerDied => Self::EOWNERDEAD,
        }
    }
}
