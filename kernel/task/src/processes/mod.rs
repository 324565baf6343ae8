//! Processes and threads: what they own, and how to find them.
//!
//! A [`Process`] is what Linux calls a thread group: an address space, signal actions,
//! a parent, an exit status. A [`Thread`] is what the scheduler runs. Threads hold their
//! process; a process lists its threads, so a parked thread that nobody waits for
//! stays alive. Who descends from whom is in [`family`].

mod access;
mod change;
mod current;
mod exit;
pub mod fail_nth;
pub mod family;
mod fork;
mod futex_host;
mod id;
mod kernel_thread;
mod latch;
mod observer;
pub mod out_of_memory;
mod personality;
mod pidfd;
mod process;
mod realtime_limit;
mod ring_work;
pub mod seccomp;
mod start;
mod status;
mod thread;
mod threads;
pub mod timers;
mod usage;

pub use access::{Caller, check_access, check_process_access};
pub use accounting::CpuTime;
pub use current::{adopt_boot_thread, current, start_cpu, try_current};
pub use exit::{
    LockRelease, become_only_thread, exit_thread, forget_program, on_init_exit, on_process_exit,
    release_locks, release_locks_by,
};
pub use fork::{Child, Clone, CloneFlags, begin_thread, clone};
pub use futex_host::{FutexHost, FutexWaiter};
pub use id::{ID_MAX, Pid, Tid, allocate_id, allocated_ids, release_id};
pub use kernel_thread::start_kernel_thread;
pub use latch::Latch;
pub use observer::{Observer, Watch, observe_by};
pub use personality::Personality;
pub use pidfd::{pid_file, process_of};
pub use process::{Image, Process};
pub use ring_work::{RingWork, run_ring_work};
pub use start::{Template, start_init, start_parentless};
pub use status::{Change, ExitStatus, Report};
pub use thread::{Name, Rseq, Seed, Thread};
pub use threads::{find_thread, thread_count};
pub use usage::Usage;
