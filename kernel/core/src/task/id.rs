//! Numbers of processes and threads: one space, as in Linux.

use alloc::collections::BTreeSet;

use mach::sync::Spin;

/// A thread's number; also the number of the process whose first thread it is.
pub type Tid = u32;
/// A process' number.
pub type Pid = u32;

/// Linux' default for /proc/sys/kernel/pid_max.
pub const ID_MAX: u32 = 32_768;

struct Ids {
    used: BTreeSet<u32>,
    last: u32,
    /// How many were ever given out.
    given: u64,
}

static IDS: Spin<Ids> = Spin::new(Ids {
    used: BTreeSet::new(),
    last: 0,
    given: 0,
});

/// The next free number after the last one given, so that numbers are not reused soon;
/// `None` when all are taken.
pub fn allocate_id() -> Option<u32> {
    let mut ids = IDS.lock();
    let last = ids.last;
    let id = (last + 1..ID_MAX)
        .chain(1..=last)
        .find(|id| !ids.used.contains(id))?;
    ids.used.insert(id);
    ids.last = id;
    ids.given += 1;
    Some(id)
}

/// Processes and threads that were ever started.
pub fn allocated_ids() -> u64 {
    IDS.lock().given
}

/// Gives a number back once nothing answers to it any more.
pub fn release_id(id: u32) {
    IDS.lock().used.remove(&id);
}
