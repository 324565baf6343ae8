//! Scheduling: yielding, affinity, nice values, where a thread runs. Policies are `policy`'s.

use alloc::sync::Arc;
use alloc::vec::Vec;

use cred::{Capability, Resource};
use linux_raw_sys::general::{
    __NR_getcpu, __NR_getpriority, __NR_sched_getaffinity, __NR_sched_setaffinity,
    __NR_sched_yield, __NR_setpriority, PRIO_PGRP, PRIO_PROCESS, PRIO_USER,
};
use mach::cpu::CpuSet;
use mach::mem::fallible::{self, TryGrow};
use mm::user;
use task::{self, Thread, family};

use linux_abi::call::{Arg, Call, Entry, Outcome};
use linux_abi::errno::Errno;

/// The calls of this family.
pub const CALLS: &[Entry] = &[
    Entry {
        number: __NR_sched_yield,
        name: "sched_yield",
        args: &[],
        handler: sched_yield,
    },
    Entry {
        number: __NR_getcpu,
        name: "getcpu",
        args: &[Arg::Address, Arg::Address],
        handler: getcpu,
    },
    Entry {
        number: __NR_sched_getaffinity,
        name: "sched_getaffinity",
        args: &[Arg::Int, Arg::Size, Arg::Address],
        handler: getaffinity,
    },
    Entry {
        number: __NR_sched_setaffinity,
        name: "sched_setaffinity",
        args: &[Arg::Int, Arg::Size, Arg::Address],
        handler: setaffinity,
    },
    Entry {
        number: __NR_getpriority,
        name: "getpriority",
        args: &[Arg::Int, Arg::Int],
        handler: getpriority,
    },
    Entry {
        number: __NR_setpriority,
        name: "setpriority",
        args: &[Arg::Int, Arg::Int, Arg::Int],
        handler: setpriority,
    },
];

/// A mask of CPUs comes and goes in words of so many bytes.
const MASK_WORD_BYTES: usize = size_of::<u64>();
/// Bytes that a mask from a program needs at most.
const MASK_BYTES_MAX: usize = size_of::<CpuSet>();
/// A nice value is told as 20 minus itself, so that it is never negative.
const NICE_BIAS: i32 = 20;

fn sched_yield(_: Call<'_>) -> Outcome {
    sched::yield_now();
    Ok(0)
}

fn getcpu(call: Call<'_>) -> Outcome {
    // A write may wait for a page, and the thread may go on elsewhere.
    let cpu = mach::cpu::id();
    if let Some(at) = call.optional_addr(0) {
        user::write(at, cpu.0)?;
    }
    if let Some(at) = call.optional_addr(1) {
        user::write(at, u32::from(mach::numa::node_of(cpu).0))?;
    }
    Ok(0)
}

/// The thread that an argument names; 0 for the caller.
pub fn named(call: &Call<'_>, index: usize) -> Result<Arc<Thread>, Errno> {
    match u32::try_from(call.int(index)) {
        Ok(0) => Ok(call.thread.arc()),
        Ok(id) => task::find_thread(id).ok_or(Errno::ESRCH),
        Err(_) => Err(Errno::EINVAL),
    }
}

/// The same; a negative number is nobody's.
fn existing(call: &Call<'_>, index: usize) -> Result<Arc<Thread>, Errno> {
    named(call, index).map_err(|_| Errno::ESRCH)
}

/// Bytes of a mask that has a bit for each CPU of this machine.
fn mask_bytes() -> usize {
    let words = mach::cpu::count().div_ceil(u64::BITS as usize);
    words * MASK_WORD_BYTES
}

fn getaffinity(call: Call<'_>) -> Outcome {
    let (room, bytes) = (call.size(1), mask_bytes());
    if room < bytes || !room.is_multiple_of(MASK_WORD_BYTES) {
        return Err(Errno::EINVAL);
    }
    let cpus = existing(&call, 0)?.sched.affinity() & mach::cpu::all();
    let mut mask = [0; MASK_BYTES_MAX];
    for (bytes, word) in mask.chunks_exact_mut(MASK_WORD_BYTES).zip(cpus.words()) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    user::copy_out(mask.get(..bytes).unwrap_or(&mask), call.addr(2))?;
    Ok(bytes)
}

fn setaffinity(call: Call<'_>) -> Outcome {
    let mut bytes = [0; MASK_BYTES_MAX];
    let wanted = bytes
        .get_mut(..call.size(1).min(MASK_BYTES_MAX))
        .ok_or(Errno::EINVAL)?;
    user::copy_in(call.addr(2), wanted)?;
    let thread = existing(&call, 0)?;
    let cpus = CpuSet::from_bytes(&bytes) & mach::cpu::all();
    if cpus.is_empty() {
        return Err(Errno::EINVAL);
    }
    check_owner(&call, &thread)?;
    sched::set_affinity(&thread.sched, cpus);
    if !thread.sched.allows(thread.sched.last_cpu()) {
        if core::ptr::eq(&*thread, call.thread) {
            sched::migrate();
        } else {
            sched::interrupt(&thread.sched);
        }
    }
    Ok(0)
}

/// Only the owner of a thread, or somebody with CAP_SYS_NICE, may change how it runs.
fn check_owner(call: &Call<'_>, thread: &Thread) -> Result<(), Errno> {
    match is_owner(call, thread) || is_nice_to_all(call) {
        true => Ok(()),
        false => Err(Errno::EPERM),
    }
}

/// Whether the caller is the user who runs the thread.
pub fn is_owner(call: &Call<'_>, thread: &Thread) -> bool {
    let own = call.thread.credentials.with(|own| own.user.effective);
    let owner = thread.credentials.with(|credentials| credentials.user);
    [owner.real, owner.effective].contains(&own)
}

/// Whether the caller has CAP_SYS_NICE.
pub fn is_nice_to_all(call: &Call<'_>) -> bool {
    call.thread
        .credentials
        .with(|own| own.has(Capability::SysNice))
}

/// Of which threads a call speaks; argument 1 says whose.
#[derive(Clone, Copy)]
pub enum Selection {
    /// One.
    Thread,
    /// All of a group's processes.
    Group,
    /// All of a user's.
    User,
}

/// The threads that getpriority(2) and setpriority(2) speak of.
fn selected(call: &Call<'_>) -> Result<Vec<Arc<Thread>>, Errno> {
    let selection = match call.uint(0) {
        PRIO_PROCESS => Selection::Thread,
        PRIO_PGRP => Selection::Group,
        PRIO_USER => Selection::User,
        _ => return Err(Errno::EINVAL),
    };
    select(call, selection)
}

/// The threads of a selection; perhaps none.
pub fn select(call: &Call<'_>, selection: Selection) -> Result<Vec<Arc<Thread>>, Errno> {
    let who = call.uint(1);
    let processes = match selection {
        Selection::Thread => return Ok(alloc::vec![existing(call, 1)?]),
        Selection::Group => {
            let own = family::group_of(call.thread.process.id()).unwrap_or(0);
            fallible::collected(family::group_members(if who == 0 { own } else { who }))
        }
        Selection::User => {
            let own = call
                .thread
                .credentials
                .with(|credentials| credentials.user.real);
            let uid = if who == 0 { own } else { who };
            let is_own = |thread: &Thread| thread.credentials.with(|of| of.user.real) == uid;
            let all = family::processes();
            fallible::collected(
                all.filter(|process| process.first_thread().is_some_and(|first| is_own(&first))),
            )
        }
    };
    let mut threads = Vec::new();
    for process in processes.map_err(|_| Errno::ENOMEM)? {
        let own = process.threads();
        threads.make_room(own.len()).map_err(|_| Errno::ENOMEM)?;
        threads.extend(own);
    }
    Ok(threads)
}

fn getpriority(call: Call<'_>) -> Outcome {
    let best = selected(&call)?
        .iter()
        .map(|thread| thread.sched.nice())
        .min();
    let best = best.ok_or(Errno::ESRCH)?;
    Ok((NICE_BIAS - i32::from(best)).unsigned_abs() as usize)
}

fn setpriority(call: Call<'_>) -> Outcome {
    let nice = call.int(2).clamp(-20, 19) as i8;
    let threads = selected(&call)?;
    if threads.is_empty() {
        return Err(Errno::ESRCH);
    }
    for thread in &threads {
        check_owner(&call, thread)?;
        if nice < thread.sched.nice() {
            check_nicer(&call, thread, nice)?;
        }
        thread.sched.set_nice(nice);
    }
    Ok(0)
}

/// RLIMIT_NICE says how far down a nice value may go: 20 minus it.
fn check_nicer(call: &Call<'_>, thread: &Thread, nice: i8) -> Result<(), Errno> {
    match may_be_nice(thread, nice) || is_nice_to_all(call) {
        true => Ok(()),
        false => Err(Errno::EACCES),
    }
}

/// Whether RLIMIT_NICE allows the thread this value.
pub fn may_be_nice(thread: &Thread, nice: i8) -> bool {
    let floor = thread.process.limits.soft(Resource::Nice);
    u64::from((NICE_BIAS - i32::from(nice)).unsigned_abs()) <= floor
}
