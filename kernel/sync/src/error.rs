//! Why the kernel refused something, in its own words.
//!
//! `kernel/linux` alone knows which errno each of these is. A variant names the fact,
//! not the number, so that one fact may become different numbers in different calls.

/// What went wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Error {
    /// The operation is not permitted to this program (EPERM).
    NotPermitted,
    /// File permissions forbid it (EACCES).
    AccessDenied,
    /// No such file or directory (ENOENT).
    NotFound,
    /// No such process or thread (ESRCH).
    NoSuchProcess,
    /// A signal arrived; the rule says what becomes of the call.
    Interrupted(Restart),
    /// The device or file system failed (EIO).
    Io,
    /// No such device or address (ENXIO).
    NoSuchDevice,
    /// Arguments and environment exceed their limit (E2BIG).
    ArgumentsTooLong,
    /// Not an executable this kernel runs (ENOEXEC).
    NotExecutable,
    /// No open file has this number, or not for this access (EBADF).
    BadFile,
    /// There is no child to wait for (ECHILD).
    NoChild,
    /// It would block, and the caller does not want to (EAGAIN).
    WouldBlock,
    /// Not enough memory (ENOMEM).
    OutOfMemory,
    /// An address is not the program's to use (EFAULT).
    BadAddress,
    /// In use (EBUSY).
    Busy,
    /// It exists already (EEXIST).
    Exists,
    /// Across file systems (EXDEV).
    CrossDevice,
    /// The device does not do this (ENODEV).
    WrongDevice,
    /// Not a directory (ENOTDIR).
    NotDirectory,
    /// Is a directory (EISDIR).
    IsDirectory,
    /// An argument makes no sense (EINVAL).
    Invalid,
    /// The system's table of open files is full (ENFILE).
    TooManyFilesInSystem,
    /// The program's table of open files is full (EMFILE).
    TooManyFiles,
    /// Not a terminal, or not this kind of object (ENOTTY).
    NotTerminal,
    /// The program file is being written (ETXTBSY).
    TextBusy,
    /// Larger than files may be (EFBIG).
    FileTooLarge,
    /// The device is full (ENOSPC).
    NoSpace,
    /// A pipe or socket has no position (ESPIPE).
    NotSeekable,
    /// Read-only file system (EROFS).
    ReadOnly,
    /// The user would have more than its share (EDQUOT).
    OverQuota,
    /// Too many links (EMLINK).
    TooManyLinks,
    /// Nobody reads the other end (EPIPE).
    BrokenPipe,
    /// A number is none of those that mean something (EDOM).
    OutOfDomain,
    /// A result does not fit (ERANGE).
    OutOfRange,
    /// It would deadlock (EDEADLK).
    Deadlock,
    /// A name is too long (ENAMETOOLONG).
    NameTooLong,
    /// No lock is to be had (ENOLCK).
    NoLocks,
    /// We do not have this call (ENOSYS).
    NotImplemented,
    /// The directory is not empty (ENOTEMPTY).
    NotEmpty,
    /// Too many symbolic links (ELOOP).
    TooManySymlinks,
    /// A value does not fit its type (EOVERFLOW).
    Overflow,
    /// No data of this kind (ENODATA).
    NoData,
    /// A timer expired (ETIME / ETIMEDOUT).
    TimedOut,
    /// Not a socket (ENOTSOCK).
    NotSocket,
    /// An address is needed (EDESTADDRREQ).
    DestinationRequired,
    /// Longer than the protocol sends at once (EMSGSIZE).
    MessageTooLong,
    /// Wrong protocol for this socket (EPROTOTYPE).
    WrongProtocolType,
    /// The protocol has no such option (ENOPROTOOPT).
    NoSuchOption,
    /// We do not speak this protocol (EPROTONOSUPPORT).
    ProtocolUnsupported,
    /// No sockets of this type (ESOCKTNOSUPPORT).
    SocketTypeUnsupported,
    /// The object does not do this (EOPNOTSUPP).
    Unsupported,
    /// No sockets of this address family (EAFNOSUPPORT).
    FamilyUnsupported,
    /// Address in use (EADDRINUSE).
    AddressInUse,
    /// Not an address of this machine (EADDRNOTAVAIL).
    AddressNotAvailable,
    /// The network is down (ENETDOWN).
    NetworkDown,
    /// No route to the network (ENETUNREACH).
    NetworkUnreachable,
    /// The connection was aborted (ECONNABORTED).
    ConnectionAborted,
    /// The peer reset the connection (ECONNRESET).
    ConnectionReset,
    /// No buffers (ENOBUFS).
    NoBuffers,
    /// Already connected (EISCONN).
    IsConnected,
    /// Not connected (ENOTCONN).
    NotConnected,
    /// Shut down (ESHUTDOWN).
    ShutDown,
    /// Nobody answered in time (ETIMEDOUT).
    ConnectionTimedOut,
    /// The peer refused (ECONNREFUSED).
    ConnectionRefused,
    /// The object was removed (EIDRM).
    Removed,
    /// No message of the wanted kind (ENOMSG).
    NoMessage,
    /// Too many descriptors are under way in messages (ETOOMANYREFS).
    TooManyReferences,
    /// No route to the host (EHOSTUNREACH).
    HostUnreachable,
    /// The host is not there (EHOSTDOWN).
    HostDown,
    /// A flaw in what was sent (EPROTO).
    Protocol,
    /// Under way already (EALREADY).
    AlreadyInProgress,
    /// Begun; completion will be signalled (EINPROGRESS).
    InProgress,
    /// The owner of a robust lock died (EOWNERDEAD).
    OwnerDied,
}

/// What becomes of a call that a signal interrupted, once its handler has run
/// (Linux's ERESTART family).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Restart {
    /// Restarted where the handler was installed with `SA_RESTART`, else EINTR.
    IfAsked,
    /// Restarted only where no handler ran, else EINTR.
    IfNoHandler,
    /// Always EINTR.
    Never,
}

/// A result of the kernel's.
pub type Result<T> = core::result::Result<T, Error>;

impl From<mach::mem::fallible::NoMemory> for Error {
    fn from(_: mach::mem::fallible::NoMemory) -> Self {
        Self::OutOfMemory
    }
}
