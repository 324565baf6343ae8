//! kcmp: whether two threads share something of the kernel's.
//!
//! The answers also put the objects into an order, for who compares many (kcmp(2)). That order
//! must not tell where in memory they are: it is that of their addresses times a number that
//! nobody knows.

use alloc::sync::Arc;
use core::cmp::Ordering;

use linux_raw_sys::general::__NR_kcmp;
use mach::sync::Once;
use task::{Caller, Thread, check_access, find_thread};
use vfs::file::OpenFile;

use linux_abi::call::{Arg, Call, Entry, Outcome};
use linux_abi::errno::Errno;

/// The calls of this family.
pub const CALLS: &[Entry] = &[Entry {
    number: __NR_kcmp,
    name: "kcmp",
    args: &[Arg::Int, Arg::Int, Arg::Int, Arg::Int, Arg::Int],
    handler: kcmp,
}];

/// What is compared (linux/kcmp.h).
const FILE: u32 = 0;
const VM: u32 = 1;
const FILES: u32 = 2;
const FS: u32 = 3;
const SIGHAND: u32 = 4;
const IO: u32 = 5;
const SYSVSEM: u32 = 6;

type Result<T> = core::result::Result<T, Errno>;

fn kcmp(call: Call<'_>) -> Outcome {
    let (one, other) = (thread(&call, 0)?, thread(&call, 1)?);
    let answer = match call.uint(2) {
        FILE => {
            let (one, other) = (open_file(&one, &call, 3)?, open_file(&other, &call, 4)?);
            compare(&one, &other)
        }
        VM => compare(&one.process.space.get(), &other.process.space.get()),
        FILES => compare(&one.files.get(), &other.files.get()),
        FS => compare(&one.fs.get(), &other.fs.get()),
        SIGHAND => {
            let actions = |thread: &Thread| thread.process.signals.actions.get();
            compare(&actions(&one), &actions(&other))
        }
        // A process has its own record of what semaphores owe, and nobody a context of I/O.
        IO => Ordering::Equal,
        SYSVSEM => compare(&one.process, &other.process),
        _ => return Err(Errno::EINVAL),
    };
    Ok(match answer {
        Ordering::Equal => 0,
        Ordering::Less => 1,
        Ordering::Greater => 2,
    })
}

/// A thread that the caller may look into.
fn thread(call: &Call<'_>, index: usize) -> Result<Arc<Thread>> {
    let thread = find_thread(call.uint(index)).ok_or(Errno::ESRCH)?;
    check_access(&thread, Caller::Real)?;
    Ok(thread)
}

fn open_file(of: &Thread, call: &Call<'_>, index: usize) -> Result<Arc<OpenFile>> {
    Ok(of.files.get().get_any(call.uint(index))?)
}

fn compare<T>(one: &Arc<T>, other: &Arc<T>) -> Ordering {
    /// The machine's, so that the order of two objects is the same in each call.
    static KEY: Once<u64> = Once::new();
    // Odd, so that different addresses stay different.
    let key = *KEY.call_once(|| random::next_u64() | 1);
    let rank = |object: &Arc<T>| (Arc::as_ptr(object).addr() as u64).wrapping_mul(key);
    rank(one).cmp(&rank(other))
}
