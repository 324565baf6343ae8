//! The functions of the C library that ours stand in front of.

use std::ffi::{CStr, c_int, c_uint, c_void};
use std::marker::PhantomData;
use std::mem;
use std::process;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

use libc::{
    FILE, c_char, epoll_event, fd_set, iovec, mmsghdr, mode_t, msghdr, nfds_t, off_t, off64_t,
    pid_t, pollfd, sigset_t, size_t, sockaddr, socklen_t, ssize_t, timespec, timeval, uid_t,
};

/// A name, and the next function of it behind ours.
pub struct Behind {
    pub name: &'static CStr,
    found: AtomicPtr<c_void>,
}

impl Behind {
    /// The function. Without one the program cannot go on.
    #[inline]
    pub fn get(&self) -> *mut c_void {
        let found = self.found.load(Relaxed);
        match found.is_null() {
            true => self.find(),
            false => found,
        }
    }

    #[cold]
    fn find(&self) -> *mut c_void {
        // SAFETY: the name ends with a zero.
        let found = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
        if found.is_null() {
            process::abort();
        }
        self.set(found);
        found
    }

    /// From now on it is this one.
    ///
    /// Whoever learns by a number's byte that the number is none of ours any more finds it.
    pub fn set(&self, function: *mut c_void) {
        self.found.store(function, Relaxed);
    }
}

/// The next function of a name behind ours, of the type `F`.
pub struct Next<F> {
    behind: Behind,
    of: PhantomData<F>,
}

impl<F: Copy> Next<F> {
    /// # Safety
    /// **Named**.
    const unsafe fn new(name: &'static CStr) -> Self {
        const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
        let behind = Behind {
            name,
            found: AtomicPtr::new(ptr::null_mut()),
        };
        Self {
            behind,
            of: PhantomData,
        }
    }

    /// The function.
    #[inline]
    pub fn get(&self) -> F {
        let found = self.behind.get();
        // SAFETY: **Named**; `new` has compared the sizes.
        unsafe { mem::transmute_copy(&found) }
    }
}

/// Declares functions by their names and types, and a list of them.
macro_rules! behind {
    ($all:ident: $($name:ident: fn($($argument:ty),*) -> $result:ty;)*) => {
        behind! { $($name: fn($($argument),*) -> $result;)* }

        /// All of them.
        pub static $all: &[&Behind] = &[$(&$name.behind),*];
    };
    ($($name:ident: fn($($argument:ty),*) -> $result:ty;)*) => {
        $(
            #[allow(non_upper_case_globals, reason = "as in C")]
            pub static $name: Next<unsafe extern "C" fn($($argument),*) -> $result> =
                // SAFETY: **Named**, as the manual of section 2 has it.
                unsafe {
                    Next::new(match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                        Ok(name) => name,
                        Err(_) => c"",
                    })
                };
        )*
    };
}

type Strings = *const *const c_char;
type Name = *const sockaddr;
type NameAt = *mut sockaddr;
type LenAt = *mut socklen_t;

behind! {
    ALL:
    socket: fn(c_int, c_int, c_int) -> c_int;
    bind: fn(c_int, Name, socklen_t) -> c_int;
    listen: fn(c_int, c_int) -> c_int;
    accept4: fn(c_int, NameAt, LenAt, c_int) -> c_int;
    connect: fn(c_int, Name, socklen_t) -> c_int;
    getsockname: fn(c_int, NameAt, LenAt) -> c_int;
    getpeername: fn(c_int, NameAt, LenAt) -> c_int;
    getsockopt: fn(c_int, c_int, c_int, *mut c_void, LenAt) -> c_int;
    setsockopt: fn(c_int, c_int, c_int, *const c_void, socklen_t) -> c_int;
    shutdown: fn(c_int, c_int) -> c_int;
    close: fn(c_int) -> c_int;
    dup: fn(c_int) -> c_int;
    dup2: fn(c_int, c_int) -> c_int;
    dup3: fn(c_int, c_int, c_int) -> c_int;
    fcntl: fn(c_int, c_int, usize) -> c_int;
    ioctl: fn(c_int, libc::c_ulong, usize) -> c_int;
    read: fn(c_int, *mut c_void, size_t) -> ssize_t;
    readv: fn(c_int, *const iovec, c_int) -> ssize_t;
    recvfrom: fn(c_int, *mut c_void, size_t, c_int, NameAt, LenAt) -> ssize_t;
    recvmsg: fn(c_int, *mut msghdr, c_int) -> ssize_t;
    recvmmsg: fn(c_int, *mut mmsghdr, c_uint, c_int, *mut timespec) -> c_int;
    write: fn(c_int, *const c_void, size_t) -> ssize_t;
    writev: fn(c_int, *const iovec, c_int) -> ssize_t;
    sendto: fn(c_int, *const c_void, size_t, c_int, Name, socklen_t) -> ssize_t;
    sendmsg: fn(c_int, *const msghdr, c_int) -> ssize_t;
    sendmmsg: fn(c_int, *mut mmsghdr, c_uint, c_int) -> c_int;
    sendfile: fn(c_int, c_int, *mut off_t, size_t) -> ssize_t;
    splice: fn(c_int, *mut off64_t, c_int, *mut off64_t, size_t, c_uint) -> ssize_t;
    epoll_create1: fn(c_int) -> c_int;
    epoll_ctl: fn(c_int, c_int, c_int, *mut epoll_event) -> c_int;
    epoll_pwait: fn(c_int, *mut epoll_event, c_int, c_int, *const sigset_t) -> c_int;
    ppoll: fn(*mut pollfd, nfds_t, *const timespec, *const sigset_t) -> c_int;
    setuid: fn(uid_t) -> c_int;
    setreuid: fn(uid_t, uid_t) -> c_int;
    _exit: fn(c_int) -> c_int;
    setresuid: fn(uid_t, uid_t, uid_t) -> c_int;
    execve: fn(*const c_char, Strings, Strings) -> c_int;
    execvpe: fn(*const c_char, Strings, Strings) -> c_int;
    fexecve: fn(c_int, Strings, Strings) -> c_int;
    posix_spawn: fn(*mut pid_t, *const c_char, *const c_void, *const c_void, Strings, Strings) -> c_int;
    posix_spawnp: fn(*mut pid_t, *const c_char, *const c_void, *const c_void, Strings, Strings) -> c_int;
    system: fn(*const c_char) -> c_int;
    popen: fn(*const c_char, *const c_char) -> *mut FILE;
    vfork: fn() -> pid_t;
    close_range: fn(c_uint, c_uint, c_int) -> c_int;
    select: fn(c_int, *mut fd_set, *mut fd_set, *mut fd_set, *mut timeval) -> c_int;
    pselect: fn(c_int, *mut fd_set, *mut fd_set, *mut fd_set, *const timespec, *const sigset_t) -> c_int;
}

type Path = *const c_char;
type StatAt = *mut libc::stat;

// Those of files: what is on a log stays with the library that opened it, so these are not exchanged.
behind! {
    open: fn(Path, c_int, mode_t) -> c_int;
    openat: fn(c_int, Path, c_int, mode_t) -> c_int;
    fopen: fn(Path, Path) -> *mut FILE;
    fdopen: fn(c_int, Path) -> *mut FILE;
    fileno: fn(*mut FILE) -> c_int;
    stat: fn(Path, StatAt) -> c_int;
    lstat: fn(Path, StatAt) -> c_int;
    fstat: fn(c_int, StatAt) -> c_int;
    fstatat: fn(c_int, Path, StatAt, c_int) -> c_int;
    statx: fn(c_int, Path, c_int, c_uint, *mut libc::statx) -> c_int;
    access: fn(Path, c_int) -> c_int;
    faccessat: fn(c_int, Path, c_int, c_int) -> c_int;
    rename: fn(Path, Path) -> c_int;
    renameat: fn(c_int, Path, c_int, Path) -> c_int;
    renameat2: fn(c_int, Path, c_int, Path, c_uint) -> c_int;
    unlink: fn(Path) -> c_int;
    unlinkat: fn(c_int, Path, c_int) -> c_int;
    remove: fn(Path) -> c_int;
    truncate: fn(Path, off_t) -> c_int;
    ftruncate: fn(c_int, off_t) -> c_int;
    fsync: fn(c_int) -> c_int;
    fdatasync: fn(c_int) -> c_int;
    lseek: fn(c_int, off_t, c_int) -> off_t;
    pread: fn(c_int, *mut c_void, size_t, off_t) -> ssize_t;
    pwrite: fn(c_int, *const c_void, size_t, off_t) -> ssize_t;
    preadv: fn(c_int, *const iovec, c_int, off_t) -> ssize_t;
    pwritev: fn(c_int, *const iovec, c_int, off_t) -> ssize_t;
    fallocate: fn(c_int, c_int, off_t, off_t) -> c_int;
    posix_fallocate: fn(c_int, off_t, off_t) -> c_int;
    posix_fadvise: fn(c_int, off_t, off_t, c_int) -> c_int;
}

type Ring = *mut c_void;
type Taken = *mut *mut c_void;

// Those of liburing, for rings that are the kernel's; not exchanged, for while a ring is ours nothing is.
behind! {
    io_uring_submit: fn(Ring) -> c_int;
    io_uring_submit_and_wait: fn(Ring, c_uint) -> c_int;
    io_uring_submit_and_get_events: fn(Ring) -> c_int;
    io_uring_get_events: fn(Ring) -> c_int;
    __io_uring_get_cqe: fn(Ring, Taken, c_uint, c_uint, *const sigset_t) -> c_int;
    io_uring_wait_cqes: fn(Ring, Taken, c_uint, *const timespec, *const sigset_t) -> c_int;
    io_uring_submit_and_wait_timeout: fn(Ring, Taken, c_uint, *const timespec, *const sigset_t) -> c_int;
    io_uring_peek_batch_cqe: fn(Ring, Taken, c_uint) -> c_uint;
    io_uring_queue_exit: fn(Ring) -> ();
}
