//! Numbers of processes and threads: one space, as in Linux.

use core::sync::atomic::AtomicUsize;

use mach::sync::Native;
use relations::Numbers;

/// A thread's number; also the number of the process whose first thread it is.
pub type Tid = u32;
/// A process' number.
pub type Pid = u32;

/// Linux's default for /proc/sys/kernel/pid_max.
pub const ID_MAX: u32 = 32_768;

const WORDS: usize = (ID_MAX / usize::BITS) as usize;

/// Numbers of processes, threads, groups and sessions, which must not meet.
static IDS: Numbers<Native, WORDS> = Numbers::new(
    [const { AtomicUsize::new(0) }; WORDS],
    AtomicUsize::new(0),
    AtomicUsize::new(0),
);

/// The next free number after the last one given, so that numbers are not reused soon;
/// `None` when all are taken.
pub fn allocate_id() -> Option<u32> {
    IDS.allocate()
}

/// Processes and threads that were ever started.
pub fn allocated_ids() -> u64 {
    IDS.given() as u64
}

/// Gives a number back once nothing answers to it any more.
pub fn release_id(id: u32) {
    // Number 0, of the threads that boot, is never given.
    IDS.release(id);
}

/// The first number from `from` on that is taken.
pub(super) fn next_taken(from: u32) -> Option<u32> {
    IDS.next_taken(from)
}

/// The highest number that is taken.
pub(super) fn last_taken() -> u32 {
    IDS.last_taken()
}
