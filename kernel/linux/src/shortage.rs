//! What programs are refused when the kernel's own memory runs out.
//!
//! The problem: what a program chooses the size or the number of is asked for where it can be
//! refused (`mach::mem::fallible`), and leaves the kernel's reserve alone. The rest, a few
//! small objects in a call, is not asked for; a program that makes the same call again and
//! again could still use the reserve up with them.
//!
//! The idea: while half of the reserve is gone, every call fails with ENOMEM but those that
//! give something back, wait, end a program, or only tell: [`ALLOWED`]. A call that is new
//! here is refused until somebody shows that it keeps nothing.
//!
//! Why it suffices: the half that is left serves the calls under way, on each CPU one, and
//! those whose threads wait in the kernel and go on. Each takes at most a few objects that
//! cannot be refused (`frames::RESERVE_SHARE` has the sum).

use linux_raw_sys::general::*;
use mm::reclaim;

use crate::table;
use linux_abi::call::{Call, LIMIT};
use linux_abi::errno::Errno;

/// Calls that go on while memory is short.
const ALLOWED: &[u32] = &[
    // They end something.
    __NR_exit,
    __NR_exit_group,
    __NR_kill,
    __NR_rt_sigreturn,
    __NR_shutdown,
    __NR_tgkill,
    __NR_tkill,
    // They give back.
    __NR_close,
    __NR_close_range,
    __NR_inotify_rm_watch,
    __NR_madvise,
    __NR_mq_unlink,
    __NR_munlock,
    __NR_munlockall,
    __NR_munmap,
    __NR_rmdir,
    __NR_shmdt,
    __NR_timer_delete,
    __NR_umount2,
    __NR_unlink,
    __NR_unlinkat,
    // They take out what was queued.
    __NR_mq_timedreceive,
    __NR_msgrcv,
    __NR_pread64,
    __NR_preadv,
    __NR_preadv2,
    __NR_read,
    __NR_readv,
    __NR_recvfrom,
    __NR_recvmmsg,
    __NR_recvmsg,
    // They bring data to where it is safe.
    __NR_fdatasync,
    __NR_fsync,
    __NR_msync,
    __NR_sync,
    __NR_sync_file_range,
    __NR_syncfs,
    // They wait.
    __NR_clock_nanosleep,
    __NR_epoll_pwait,
    __NR_epoll_pwait2,
    __NR_epoll_wait,
    __NR_futex,
    __NR_nanosleep,
    __NR_pause,
    __NR_poll,
    __NR_ppoll,
    __NR_pselect6,
    __NR_rt_sigsuspend,
    __NR_rt_sigtimedwait,
    __NR_sched_yield,
    __NR_select,
    __NR_wait4,
    __NR_waitid,
    // They lead to what is to be removed. A name that is found takes no memory of the reserve.
    __NR_access,
    __NR_chdir,
    __NR_faccessat,
    __NR_faccessat2,
    __NR_fchdir,
    __NR_fstat,
    __NR_getcwd,
    __NR_getdents64,
    __NR_lstat,
    __NR_newfstatat,
    __NR_readlink,
    __NR_readlinkat,
    __NR_stat,
    __NR_statx,
    // They tell, or change a word.
    __NR_alarm,
    __NR_arch_prctl,
    __NR_clock_getres,
    __NR_clock_gettime,
    __NR_get_robust_list,
    __NR_getcpu,
    __NR_getegid,
    __NR_geteuid,
    __NR_getgid,
    __NR_getitimer,
    __NR_getpeername,
    __NR_getpgid,
    __NR_getpgrp,
    __NR_getpid,
    __NR_getppid,
    __NR_getpriority,
    __NR_getrandom,
    __NR_getrlimit,
    __NR_getrusage,
    __NR_getsid,
    __NR_getsockname,
    __NR_getsockopt,
    __NR_gettid,
    __NR_gettimeofday,
    __NR_getuid,
    __NR_lseek,
    __NR_membarrier,
    __NR_prlimit64,
    __NR_rt_sigaction,
    __NR_rt_sigpending,
    __NR_rt_sigprocmask,
    __NR_set_robust_list,
    __NR_set_tid_address,
    __NR_setrlimit,
    __NR_sigaltstack,
    __NR_sysinfo,
    __NR_time,
    __NR_timer_getoverrun,
    __NR_timer_gettime,
    __NR_times,
    __NR_uname,
];

/// One bit for each call.
type Set = [u64; LIMIT / 64];

/// A constant.
static IS_ALLOWED: Set = allowed();

/// tidy: it runs at compile time only.
const fn allowed() -> Set {
    let mut set = [0; LIMIT / 64];
    let mut row = 0;
    while row < ALLOWED.len() {
        let number = ALLOWED[row] as usize;
        assert!(table::has(number), "a call that we do not have");
        assert!(set[number / 64] >> (number % 64) & 1 == 0, "named twice");
        set[number / 64] |= 1 << (number % 64);
        row += 1;
    }
    set
}

/// Whether the call goes on all the same.
fn is_allowed(call: &Call<'_>) -> bool {
    let number = call.regs.orig_rax as usize;
    let word = IS_ALLOWED.get(number / 64);
    word.is_some_and(|word| word >> (number % 64) & 1 != 0) || gives_back(call)
}

/// Whether a call that can give or take gives.
fn gives_back(call: &Call<'_>) -> bool {
    let is = |number: u32| call.regs.orig_rax == u64::from(number);
    is(__NR_epoll_ctl) && call.uint(1) == EPOLL_CTL_DEL
        || is(__NR_fcntl) && (F_GETFD..=F_SETFL).contains(&call.uint(1))
        || is(__NR_flock) && call.uint(1) & LOCK_UN != 0
}

/// What a call gets while memory is short: it may go on if it keeps nothing, or if relief
/// helped.
#[cold]
#[inline(never)]
pub fn check(call: &Call<'_>) -> Result<(), Errno> {
    match is_allowed(call) || reclaim::replenish() {
        true => Ok(()),
        false => Err(Errno::ENOMEM),
    }
}
