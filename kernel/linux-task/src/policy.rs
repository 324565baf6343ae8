//! Scheduling policies: sched_setscheduler and its kin (sched(7)).
//!
//! SCHED_DEADLINE is nobody's: who asks for it is told EPERM, as one without the privilege is.

use base::{Duration, VirtAddr};
use cred::Resource;
use ipc::futex::pi;
use linux_raw_sys::general::{
    __NR_sched_get_priority_max, __NR_sched_get_priority_min, __NR_sched_getattr,
    __NR_sched_getparam, __NR_sched_getscheduler, __NR_sched_rr_get_interval, __NR_sched_setattr,
    __NR_sched_setparam, __NR_sched_setscheduler, SCHED_BATCH, SCHED_DEADLINE, SCHED_FIFO,
    SCHED_IDLE, SCHED_NORMAL, SCHED_RR,
};
use mm::user;
use sched::{PRIORITY_MAX, Policy, ROUND};
use task::Thread;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::sched::{is_nice_to_all, is_owner, may_be_nice, named};
use linux_abi::call::{Arg, Call, Entry, Outcome};
use linux_abi::errno::Errno;
use linux_abi::timespec;

/// The calls of this family.
pub const CALLS: &[Entry] = &[
    Entry {
        number: __NR_sched_getscheduler,
        name: "sched_getscheduler",
        args: &[Arg::Int],
        handler: getscheduler,
    },
    Entry {
        number: __NR_sched_setscheduler,
        name: "sched_setscheduler",
        args: &[Arg::Int, Arg::Int, Arg::Address],
        handler: setscheduler,
    },
    Entry {
        number: __NR_sched_getparam,
        name: "sched_getparam",
        args: &[Arg::Int, Arg::Address],
        handler: getparam,
    },
    Entry {
        number: __NR_sched_setparam,
        name: "sched_setparam",
        args: &[Arg::Int, Arg::Address],
        handler: setparam,
    },
    Entry {
        number: __NR_sched_getattr,
        name: "sched_getattr",
        args: &[Arg::Int, Arg::Address, Arg::Size, Arg::Flags],
        handler: getattr,
    },
    Entry {
        number: __NR_sched_setattr,
        name: "sched_setattr",
        args: &[Arg::Int, Arg::Address, Arg::Flags],
        handler: setattr,
    },
    Entry {
        number: __NR_sched_get_priority_max,
        name: "sched_get_priority_max",
        args: &[Arg::Int],
        handler: |call| priority_bound(&call, usize::from(PRIORITY_MAX)),
    },
    Entry {
        number: __NR_sched_get_priority_min,
        name: "sched_get_priority_min",
        args: &[Arg::Int],
        handler: |call| priority_bound(&call, 1),
    },
    Entry {
        number: __NR_sched_rr_get_interval,
        name: "sched_rr_get_interval",
        args: &[Arg::Int, Arg::Address],
        handler: rr_get_interval,
    },
];

/// Beside the policy of sched_setscheduler(2).
const RESET_ON_FORK: u32 = 0x4000_0000;

/// Flags of `struct sched_attr`.
const FLAG_RESET_ON_FORK: u64 = 1;
const FLAG_RECLAIM: u64 = 2;
const FLAG_DEADLINE_OVERRUN: u64 = 4;
const FLAG_KEEP_POLICY: u64 = 8;
const FLAG_KEEP_PARAMS: u64 = 16;
const FLAGS_CLAMP: u64 = 0x60;
const FLAGS_KNOWN: u64 = FLAG_RESET_ON_FORK
    | FLAG_RECLAIM
    | FLAG_DEADLINE_OVERRUN
    | FLAG_KEEP_POLICY
    | FLAG_KEEP_PARAMS
    | FLAGS_CLAMP;

/// `struct sched_attr`.
#[derive(Clone, Copy, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
    clamp_min: u32,
    clamp_max: u32,
}

const BYTES: usize = size_of::<Attributes>();
/// Bytes of its first version.
const BYTES_FIRST: usize = 48;
const BYTES_MAX: usize = 4096;

/// What a thread is to become.
struct SchedAttr {
    policy: Policy,
    /// For policies without a priority.
    nice: Option<i8>,
    resets_on_fork: bool,
}

fn policy(number: u32, priority: u32) -> Result<Policy, Errno> {
    let priority = u8::try_from(priority).map_err(|_| Errno::EINVAL)?;
    let is_realtime = (1..=PRIORITY_MAX).contains(&priority);
    match number {
        SCHED_NORMAL if priority == 0 => Ok(Policy::Normal),
        SCHED_BATCH if priority == 0 => Ok(Policy::Batch),
        SCHED_IDLE if priority == 0 => Ok(Policy::Idle),
        SCHED_FIFO if is_realtime => Ok(Policy::Fifo(priority)),
        SCHED_RR if is_realtime => Ok(Policy::RoundRobin(priority)),
        _ => Err(Errno::EINVAL),
    }
}

/// Whether a thread without CAP_SYS_NICE may do that to another.
fn is_allowed(call: &Call<'_>, thread: &Thread, attr: &SchedAttr) -> bool {
    let class = &thread.sched.class;
    let (before, after) = (class.policy(), attr.policy);
    let is_nicer = |nice: &i8| *nice < thread.sched.nice() && !may_be_nice(thread, *nice);
    if !after.is_realtime() && attr.nice.as_ref().is_some_and(is_nicer) {
        return false;
    }
    let limit = thread.process.limits.soft(Resource::RealtimePriority);
    let is_new = before.number() != after.number();
    let rises = after.priority() > before.priority();
    if after.is_realtime() && (is_new && limit == 0 || rises && u64::from(after.priority()) > limit)
    {
        return false;
    }
    let wakes_up = before == Policy::Idle && after != Policy::Idle;
    if wakes_up && !may_be_nice(thread, thread.sched.nice()) {
        return false;
    }
    is_owner(call, thread) && (attr.resets_on_fork || !class.resets_on_fork())
}

fn set(call: &Call<'_>, thread: &Thread, attr: &SchedAttr) -> Outcome {
    if !is_allowed(call, thread, attr) && !is_nice_to_all(call) {
        return Err(Errno::EPERM);
    }
    if let Some(nice) = attr.nice.filter(|_| !attr.policy.is_realtime()) {
        thread.sched.set_nice(nice);
    }
    sched::set_policy(&thread.sched, attr.policy, attr.resets_on_fork);
    pi::note_rank(thread);
    Ok(0)
}

/// The `struct sched_param` in argument `index`.
fn priority(call: &Call<'_>, index: usize) -> Result<u32, Errno> {
    let at = call.optional_addr(index).filter(|_| call.int(0) >= 0);
    Ok(user::read(at.ok_or(Errno::EINVAL)?)?)
}

fn setscheduler(call: Call<'_>) -> Outcome {
    if call.int(1) < 0 {
        return Err(Errno::EINVAL);
    }
    let priority = priority(&call, 2)?;
    let thread = named(&call, 0)?;
    let wanted = call.uint(1) & !RESET_ON_FORK;
    if wanted == SCHED_DEADLINE && priority == 0 {
        return Err(Errno::EINVAL);
    }
    let attr = SchedAttr {
        policy: policy(wanted, priority)?,
        nice: None,
        resets_on_fork: call.uint(1) & RESET_ON_FORK != 0,
    };
    set(&call, &thread, &attr)
}

fn setparam(call: Call<'_>) -> Outcome {
    let priority = priority(&call, 1)?;
    let thread = named(&call, 0)?;
    let class = &thread.sched.class;
    let attr = SchedAttr {
        policy: policy(class.policy().number(), priority)?,
        nice: None,
        resets_on_fork: class.resets_on_fork(),
    };
    set(&call, &thread, &attr)
}

fn getscheduler(call: Call<'_>) -> Outcome {
    let thread = named(&call, 0)?;
    let class = &thread.sched.class;
    let reset = match class.resets_on_fork() {
        true => RESET_ON_FORK,
        false => 0,
    };
    Ok((class.policy().number() | reset) as usize)
}

fn getparam(call: Call<'_>) -> Outcome {
    let at = call.optional_addr(1).ok_or(Errno::EINVAL)?;
    let policy = named(&call, 0)?.sched.class.policy();
    user::write(at, u32::from(policy.priority()))?;
    Ok(0)
}

fn getattr(call: Call<'_>) -> Outcome {
    let room = call.size(2);
    let at = call.optional_addr(1).ok_or(Errno::EINVAL)?;
    if call.uint(3) != 0 || !(BYTES_FIRST..=BYTES_MAX).contains(&room) {
        return Err(Errno::EINVAL);
    }
    let thread = named(&call, 0)?;
    let class = &thread.sched.class;
    let policy = class.policy();
    let told = Attributes {
        size: room.min(BYTES) as u32,
        policy: policy.number(),
        flags: u64::from(class.resets_on_fork()),
        nice: match policy.is_realtime() {
            true => 0,
            false => thread.sched.nice().into(),
        },
        priority: policy.priority().into(),
        ..Attributes::default()
    };
    let bytes = told.as_bytes();
    user::copy_out(bytes.get(..room).unwrap_or(bytes), at)?;
    Ok(0)
}

fn setattr(call: Call<'_>) -> Outcome {
    let at = call.optional_addr(1).ok_or(Errno::EINVAL)?;
    if call.int(0) < 0 || call.uint(2) != 0 {
        return Err(Errno::EINVAL);
    }
    let wanted = read_attributes(at)?;
    if (wanted.policy as i32) < 0 || wanted.flags & !FLAGS_KNOWN != 0 {
        return Err(Errno::EINVAL);
    }
    if wanted.flags & FLAGS_CLAMP != 0 {
        return Err(Errno::EOPNOTSUPP);
    }
    let thread = named(&call, 0)?;
    let before = thread.sched.class.policy();
    let keeps = wanted.flags & FLAG_KEEP_PARAMS != 0;
    let class = &thread.sched.class;
    let (kind, resets_on_fork) = match wanted.flags & FLAG_KEEP_POLICY {
        0 => (wanted.policy, wanted.flags & FLAG_RESET_ON_FORK != 0),
        _ => (before.number(), class.resets_on_fork()),
    };
    if kind == SCHED_DEADLINE {
        return Err(Errno::EPERM);
    }
    let priority = match keeps {
        true => before.priority().into(),
        false => wanted.priority,
    };
    let policy = policy(kind, priority)?;
    let attr = SchedAttr {
        policy: if keeps { before } else { policy },
        nice: (!keeps).then_some(wanted.nice.clamp(-20, 19) as i8),
        resets_on_fork,
    };
    set(&call, &thread, &attr)
}

/// Reads as much of the structure as the program says that it has; what we do not know of it
/// must be zero. Errors: E2BIG, after storing how much we know.
fn read_attributes(at: VirtAddr) -> Result<Attributes, Errno> {
    let size = match user::read::<u32>(at)? as usize {
        0 => BYTES_FIRST,
        size => size,
    };
    let too_big = || {
        // Whether this can be told or not, the answer is the same.
        let _ = user::write(at, BYTES as u32);
        Errno::E2BIG
    };
    if !(BYTES_FIRST..=BYTES_MAX).contains(&size) {
        return Err(too_big());
    }
    let mut bytes = [0; BYTES];
    let known = bytes.get_mut(..size.min(BYTES)).unwrap_or(&mut []);
    user::copy_in(at, known)?;
    for offset in BYTES..size {
        if user::read::<u8>(at + offset as u64)? != 0 {
            return Err(too_big());
        }
    }
    Attributes::read_from_bytes(&bytes).map_err(|_| Errno::EINVAL)
}

fn priority_bound(call: &Call<'_>, realtime: usize) -> Outcome {
    match call.uint(0) {
        SCHED_FIFO | SCHED_RR => Ok(realtime),
        SCHED_NORMAL | SCHED_BATCH | SCHED_IDLE | SCHED_DEADLINE => Ok(0),
        _ => Err(Errno::EINVAL),
    }
}

fn rr_get_interval(call: Call<'_>) -> Outcome {
    let turn = match named(&call, 0)?.sched.class.policy() {
        Policy::RoundRobin(_) => ROUND,
        Policy::Fifo(_) => Duration::ZERO,
        Policy::Normal | Policy::Batch | Policy::Idle => sched::SLICE,
    };
    timespec::write(call.addr(1), turn)?;
    Ok(0)
}
