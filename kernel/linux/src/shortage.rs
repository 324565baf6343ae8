//! What programs are refused when the kernel's own memory runs out.
//!
//! The kernel's small allocations can not fail, so it keeps a reserve for them
//! (`mach::mem`). Programs could still use it up by making the kernel keep things for
//! them: sockets, pipes with bytes in them, areas, threads. When half of the reserve is
//! gone, the calls that do so fail with ENOMEM until memory is free again; calls that
//! give something back, wait, or end a program go on.

use kernel::reclaim;
use linux_raw_sys::general::*;

use crate::call::{Call, Handler, Outcome};
use crate::errno::Errno;
use crate::table;

macro_rules! keeping {
    ($($number:ident)*) => {
        /// Calls after which the kernel keeps more than before, with the handlers that
        /// refuse. The others need not ask.
        pub const KEEPING: &[(u32, Handler)] =
            &[$(($number, unless_short::<{ $number as usize }>)),*];
    };
}

keeping! {
    __NR_accept
    __NR_accept4
    __NR_bind
    __NR_brk
    __NR_clone
    __NR_clone3
    __NR_connect
    __NR_creat
    __NR_dup
    __NR_dup2
    __NR_dup3
    __NR_epoll_create
    __NR_epoll_create1
    __NR_epoll_ctl
    __NR_eventfd
    __NR_eventfd2
    __NR_execve
    __NR_execveat
    __NR_fallocate
    __NR_fcntl
    __NR_fork
    __NR_inotify_add_watch
    __NR_inotify_init
    __NR_inotify_init1
    __NR_link
    __NR_linkat
    __NR_listen
    __NR_memfd_create
    __NR_mkdir
    __NR_mkdirat
    __NR_mknod
    __NR_mknodat
    __NR_mmap
    __NR_mprotect
    __NR_mremap
    __NR_open
    __NR_openat
    __NR_openat2
    __NR_pipe
    __NR_pipe2
    __NR_pwrite64
    __NR_pwritev
    __NR_rt_sigqueueinfo
    __NR_sendfile
    __NR_sendmmsg
    __NR_sendmsg
    __NR_sendto
    __NR_setxattr
    __NR_signalfd
    __NR_signalfd4
    __NR_socket
    __NR_socketpair
    __NR_splice
    __NR_symlink
    __NR_symlinkat
    __NR_tee
    __NR_timer_create
    __NR_timerfd_create
    __NR_vfork
    __NR_write
    __NR_writev
}

/// The handler of the call `NUMBER`, in front of which memory is looked at.
fn unless_short<const NUMBER: usize>(call: Call<'_>) -> Outcome {
    if mach::mem::is_short() && !reclaim::replenish() {
        return Err(Errno::ENOMEM);
    }
    let handler = const { table::plain_handler(NUMBER) };
    handler(call)
}
