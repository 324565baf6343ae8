//! Limits and what has been used.

use alloc::sync::Arc;

use cred::{Capability, Limit, Resource};
use linux_raw_sys::general::{
    __NR_getrlimit, __NR_getrusage, __NR_prlimit64, __NR_setrlimit, __NR_times,
};
use mm::user;
use task::{self, Process, Thread};

use crate::wait::encode_usage;
use linux_abi::call::{Arg, Call, Entry, Outcome};
use linux_abi::errno::Errno;

/// The calls of this family.
pub const CALLS: &[Entry] = &[
    Entry {
        number: __NR_getrlimit,
        name: "getrlimit",
        args: &[Arg::Int, Arg::Address],
        handler: getrlimit,
    },
    Entry {
        number: __NR_setrlimit,
        name: "setrlimit",
        args: &[Arg::Int, Arg::Address],
        handler: setrlimit,
    },
    Entry {
        number: __NR_prlimit64,
        name: "prlimit64",
        args: &[Arg::Int, Arg::Int, Arg::Address, Arg::Address],
        handler: prlimit64,
    },
    Entry {
        number: __NR_getrusage,
        name: "getrusage",
        args: &[Arg::Int, Arg::Address],
        handler: getrusage,
    },
    Entry {
        number: __NR_times,
        name: "times",
        args: &[Arg::Address],
        handler: times,
    },
];

/// What fs.nr_open allows: no table of descriptors is larger.
const FILES_MAX: u64 = 1 << 20;
/// Nanoseconds of one tick of `clock_t`.
const CLOCK_NS: u64 = 10_000_000;

fn resource(call: &Call<'_>, index: usize) -> Result<Resource, Errno> {
    Resource::from_number(call.uint(index)).ok_or(Errno::EINVAL)
}

fn getrlimit(call: Call<'_>) -> Outcome {
    let limit = call.thread.process.limits.get(resource(&call, 0)?);
    user::write(call.addr(1), [limit.soft, limit.hard])?;
    Ok(0)
}

fn setrlimit(call: Call<'_>) -> Outcome {
    let resource = resource(&call, 0)?;
    let [soft, hard] = user::read(call.addr(1))?;
    set(&call, &call.thread.process, resource, Limit { soft, hard })?;
    Ok(0)
}

/// Another's limits are for who has all its ids (prlimit(2)).
fn check_others(call: &Call<'_>, thread: &Thread) -> Result<(), Errno> {
    if core::ptr::eq(&*call.thread.process, &*thread.process) {
        return Ok(());
    }
    let (own, theirs) = (call.thread.credentials.get(), thread.credentials.get());
    let is_own = theirs.user.is_all(own.user.real) && theirs.group.is_all(own.group.real);
    match is_own || own.has(Capability::SysResource) {
        true => Ok(()),
        false => Err(Errno::EPERM),
    }
}

fn set(
    call: &Call<'_>,
    process: &Arc<Process>,
    resource: Resource,
    limit: Limit,
) -> Result<(), Errno> {
    if limit.soft > limit.hard {
        return Err(Errno::EINVAL);
    }
    if resource == Resource::Files && limit.hard > FILES_MAX {
        return Err(Errno::EPERM);
    }
    if limit.hard > process.limits.get(resource).hard {
        call.thread
            .credentials
            .with(|who| who.require(Capability::SysResource))?;
    }
    process.limits.set(resource, limit);
    if resource == Resource::CpuSeconds {
        process.timers.limit_cpu(process);
    }
    Ok(())
}

fn prlimit64(call: Call<'_>) -> Outcome {
    let resource = resource(&call, 1)?;
    let process = match call.uint(0) {
        0 => call.thread.process.clone(),
        id => {
            let thread = task::find_thread(id).ok_or(Errno::ESRCH)?;
            check_others(&call, &thread)?;
            thread.process.clone()
        }
    };
    let new = call
        .optional_addr(2)
        .map(user::read::<[u64; 2]>)
        .transpose()?;
    let old = process.limits.get(resource);
    if let Some([soft, hard]) = new {
        set(&call, &process, resource, Limit { soft, hard })?;
    }
    if let Some(at) = call.optional_addr(3) {
        user::write(at, [old.soft, old.hard])?;
    }
    Ok(0)
}

const RUSAGE_SELF: i32 = 0;
const RUSAGE_CHILDREN: i32 = -1;
const RUSAGE_THREAD: i32 = 1;

fn getrusage(call: Call<'_>) -> Outcome {
    let usage = match call.int(0) {
        RUSAGE_SELF => call.thread.process.usage(),
        RUSAGE_CHILDREN => call.thread.process.children_usage(),
        RUSAGE_THREAD => task::Usage::of_thread(call.thread),
        _ => return Err(Errno::EINVAL),
    };
    user::write(call.addr(1), encode_usage(&usage))?;
    Ok(0)
}

/// `struct tms`: user and system time of the process, then of its children.
fn times(call: Call<'_>) -> Outcome {
    if let Some(at) = call.optional_addr(0) {
        let own = call.thread.process.cpu_time();
        let children = call.thread.process.children_usage().cpu;
        let parts = [
            own.user_ns,
            own.system_ns,
            children.user_ns,
            children.system_ns,
        ];
        user::write(at, parts.map(|nanos| nanos / CLOCK_NS))?;
    }
    Ok((mach::time::now().as_nanos() / CLOCK_NS) as usize)
}
