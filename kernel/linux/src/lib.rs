//! The table of Linux's calls, the way from a program to one of them, and process 1.
//!
//! `trap` hears of a program's exceptions, `dispatch` of its calls, and runs the one of
//! `handlers`. Those come from `table`, which is merged at compile time from the families of
//! calls: one file each, in the crates `linux-*` and, where they are of the whole machine or of
//! no kind of object alone, here. A handler decodes and checks every argument, then calls `kernel`, then encodes the result. It
//! holds no state of its own and no policy.
//!
//! What the families share, errno with it, is in `linux_abi`. Whatever a program passes,
//! nothing in these crates may panic: no indexing, no unwrap, no arithmetic that overflows;
//! `host/tidy` checks it.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod death;
mod dispatch;
mod handlers;
mod init;
mod ioctl;
mod links;
mod random;
mod reboot;
mod root;
mod settings;
mod shortage;
mod strace;
mod sysinfo;
mod table;
mod trap;

pub use init::{First, Volume, VolumeSource, start_init};
pub use root::{Changes, Root};
pub use settings::Settings;
pub use trap::init;
