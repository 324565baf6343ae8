//! membarrier(2): a memory barrier on all CPUs that run the program.
//!
//! A CPU that enters the kernel passes a barrier. So each other CPU is kicked, and the
//! caller waits until each has been in the kernel since: it has switched, or answered.

use core::sync::atomic::{Ordering, fence};

use linux_raw_sys::general::__NR_membarrier;

use linux_abi::call::{Arg, Call, Entry, Outcome};
use linux_abi::errno::Errno;

/// The calls of this family.
pub const CALLS: &[Entry] = &[Entry {
    number: __NR_membarrier,
    name: "membarrier",
    args: &[Arg::Flags, Arg::Flags, Arg::Int],
    handler: membarrier,
}];

const QUERY: u64 = 0;
const GLOBAL: u64 = 1;
const GLOBAL_EXPEDITED: u64 = 2;
const REGISTER_GLOBAL_EXPEDITED: u64 = 4;
const PRIVATE_EXPEDITED: u64 = 8;
const REGISTER_PRIVATE_EXPEDITED: u64 = 16;
const SYNC_CORE: u64 = 32;
const REGISTER_SYNC_CORE: u64 = 64;
const RSEQ: u64 = 128;
const REGISTER_RSEQ: u64 = 256;
const ALL: u64 = GLOBAL
    | GLOBAL_EXPEDITED
    | REGISTER_GLOBAL_EXPEDITED
    | PRIVATE_EXPEDITED
    | REGISTER_PRIVATE_EXPEDITED
    | SYNC_CORE
    | REGISTER_SYNC_CORE
    | RSEQ
    | REGISTER_RSEQ;

fn membarrier(call: Call<'_>) -> Outcome {
    let command = u64::from(call.uint(0));
    let registered = &call.thread.process.membarriers;
    if call.uint(1) != 0 && command != RSEQ {
        return Err(Errno::EINVAL);
    }
    match command {
        QUERY => return Ok(ALL as usize),
        REGISTER_GLOBAL_EXPEDITED
        | REGISTER_PRIVATE_EXPEDITED
        | REGISTER_SYNC_CORE
        | REGISTER_RSEQ => {
            registered.fetch_or(command, Ordering::Relaxed);
            return Ok(0);
        }
        GLOBAL | GLOBAL_EXPEDITED => {}
        // The registration's bit is the one above the command's.
        PRIVATE_EXPEDITED | SYNC_CORE | RSEQ => {
            if registered.load(Ordering::Relaxed) & command << 1 == 0 {
                return Err(Errno::EPERM);
            }
        }
        _ => return Err(Errno::EINVAL),
    }
    fence(Ordering::SeqCst);
    if command == RSEQ {
        call.thread.process.with_threads(|threads| {
            threads.iter().for_each(|thread| thread.sched.note_switch());
        });
    }
    sched::wait_for_grace_period();
    fence(Ordering::SeqCst);
    Ok(0)
}
