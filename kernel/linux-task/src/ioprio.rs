//! ioprio_get, ioprio_set: the priority of transfers, which is remembered.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::Ordering::Relaxed;

use cred::Capability;
use linux_raw_sys::general::{__NR_ioprio_get, __NR_ioprio_set};
use task::Thread;

use crate::sched::{Selection, select};
use linux_abi::call::{Arg, Call, Entry, Outcome};
use linux_abi::errno::Errno;

/// The calls of this family.
pub const CALLS: &[Entry] = &[
    Entry {
        number: __NR_ioprio_get,
        name: "ioprio_get",
        args: &[Arg::Int, Arg::Int],
        handler: ioprio_get,
    },
    Entry {
        number: __NR_ioprio_set,
        name: "ioprio_set",
        args: &[Arg::Int, Arg::Int, Arg::Int],
        handler: ioprio_set,
    },
];

/// A priority is a class, from this bit on, a level, and hints for devices between the two
/// (include/uapi/linux/ioprio.h).
const CLASS_SHIFT: u16 = 13;
const CLASS_NONE: u16 = 0;
const CLASS_REALTIME: u16 = 1;
const CLASS_BEST_EFFORT: u16 = 2;
const CLASS_IDLE: u16 = 3;
/// The levels of a class.
const LEVEL_MASK: u16 = 7;

/// The threads that a call speaks of.
fn threads(call: &Call<'_>) -> Result<Vec<Arc<Thread>>, Errno> {
    let selection = match call.int(0) {
        1 => Selection::Thread,
        2 => Selection::Group,
        3 => Selection::User,
        _ => return Err(Errno::EINVAL),
    };
    match select(call, selection)? {
        none if none.is_empty() => Err(Errno::ESRCH),
        threads => Ok(threads),
    }
}

fn ioprio_set(call: Call<'_>) -> Outcome {
    let priority = u16::try_from(call.int(2)).map_err(|_| Errno::EINVAL)?;
    let level = priority & LEVEL_MASK;
    let own = call.thread.credentials.get();
    match priority >> CLASS_SHIFT {
        CLASS_NONE if level != 0 => return Err(Errno::EINVAL),
        CLASS_REALTIME if !own.has(Capability::SysAdmin) && !own.has(Capability::SysNice) => {
            return Err(Errno::EPERM);
        }
        CLASS_NONE | CLASS_REALTIME | CLASS_BEST_EFFORT | CLASS_IDLE => {}
        _ => return Err(Errno::EINVAL),
    }
    for thread in threads(&call)? {
        let owner = thread.credentials.with(|who| who.user.real);
        let is_own = [own.user.real, own.user.effective].contains(&owner);
        if !is_own && !own.has(Capability::SysNice) {
            return Err(Errno::EPERM);
        }
        thread.io_priority.store(priority, Relaxed);
    }
    Ok(0)
}

/// The most urgent of several.
fn ioprio_get(call: Call<'_>) -> Outcome {
    let threads = threads(&call)?;
    let priorities = threads
        .iter()
        .map(|thread| thread.io_priority.load(Relaxed));
    // One that was never set stands behind those that were.
    let urgency = |priority: &u16| match priority >> CLASS_SHIFT {
        CLASS_NONE => u16::MAX,
        _ => *priority,
    };
    Ok(usize::from(priorities.min_by_key(urgency).unwrap_or(0)))
}
