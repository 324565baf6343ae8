//! Processes and threads: what they own, and how to find them.
//!
//! A [`Process`] is what Linux calls a thread group: an address space, signal actions,
//! a parent, an exit status. A [`Thread`] is what the scheduler runs. Threads hold their
//! process; a process lists its threads, so a parked thread that nobody waits for
//! stays alive.

mod current;
mod id;
mod process;
mod thread;

pub use current::{adopt_boot_thread, current, set_current};
pub use id::{Pid, Tid, allocate_id, release_id};
pub use process::Process;
pub use thread::{Flags, Thread};
