//! Numbers of processes, threads, groups and sessions; the end.

use core::sync::atomic::Ordering;

use linux_raw_sys::general::{
    __NR_exit, __NR_exit_group, __NR_get_robust_list, __NR_getpgid, __NR_getpgrp, __NR_getpid,
    __NR_getppid, __NR_getsid, __NR_gettid, __NR_set_robust_list, __NR_set_tid_address,
    __NR_setpgid, __NR_setsid,
};
use task::{self, ExitStatus, family};

use crate::leave;
use linux_abi::call::{Arg, Call, Entry, Outcome};
use linux_abi::errno::Errno;

/// The calls of this family.
pub const CALLS: &[Entry] = &[
    Entry {
        number: __NR_getpid,
        name: "getpid",
        args: &[],
        handler: getpid,
    },
    Entry {
        number: __NR_gettid,
        name: "gettid",
        args: &[],
        handler: gettid,
    },
    Entry {
        number: __NR_getppid,
        name: "getppid",
        args: &[],
        handler: getppid,
    },
    Entry {
        number: __NR_getpgid,
        name: "getpgid",
        args: &[Arg::Int],
        handler: getpgid,
    },
    Entry {
        number: __NR_getpgrp,
        name: "getpgrp",
        args: &[],
        handler: getpgrp,
    },
    Entry {
        number: __NR_setpgid,
        name: "setpgid",
        args: &[Arg::Int, Arg::Int],
        handler: setpgid,
    },
    Entry {
        number: __NR_getsid,
        name: "getsid",
        args: &[Arg::Int],
        handler: getsid,
    },
    Entry {
        number: __NR_setsid,
        name: "setsid",
        args: &[],
        handler: setsid,
    },
    Entry {
        number: __NR_exit,
        name: "exit",
        args: &[Arg::Int],
        handler: exit,
    },
    Entry {
        number: __NR_exit_group,
        name: "exit_group",
        args: &[Arg::Int],
        handler: exit_group,
    },
    Entry {
        number: __NR_set_tid_address,
        name: "set_tid_address",
        args: &[Arg::Address],
        handler: set_tid_address,
    },
    Entry {
        number: __NR_set_robust_list,
        name: "set_robust_list",
        args: &[Arg::Address, Arg::Size],
        handler: set_robust_list,
    },
    Entry {
        number: __NR_get_robust_list,
        name: "get_robust_list",
        args: &[Arg::Int, Arg::Address, Arg::Address],
        handler: get_robust_list,
    },
];

/// Bytes of `struct robust_list_head`.
const ROBUST_HEAD_BYTES: usize = 24;

fn getpid(call: Call<'_>) -> Outcome {
    Ok(call.thread.process.id() as usize)
}

fn gettid(call: Call<'_>) -> Outcome {
    Ok(call.thread.id() as usize)
}

fn getppid(call: Call<'_>) -> Outcome {
    Ok(family::parent_of(call.thread.process.id()) as usize)
}

/// The process that an argument names; 0 for the caller's own.
fn named(call: &Call<'_>, index: usize) -> Result<u32, Errno> {
    match u32::try_from(call.int(index)) {
        Ok(0) => Ok(call.thread.process.id()),
        Ok(id) => Ok(id),
        Err(_) => Err(Errno::EINVAL),
    }
}

fn getpgid(call: Call<'_>) -> Outcome {
    let id = named(&call, 0).map_err(|_| Errno::ESRCH)?;
    family::group_of(id)
        .map(|group| group as usize)
        .ok_or(Errno::ESRCH)
}

fn getpgrp(call: Call<'_>) -> Outcome {
    let id = call.thread.process.id();
    family::group_of(id)
        .map(|group| group as usize)
        .ok_or(Errno::ESRCH)
}

fn setpgid(call: Call<'_>) -> Outcome {
    let id = named(&call, 0).map_err(|_| Errno::EINVAL)?;
    let group = match call.int(1) {
        0 => id,
        group => u32::try_from(group).map_err(|_| Errno::EINVAL)?,
    };
    family::set_group(call.thread.process.id(), id, group)?;
    Ok(0)
}

fn getsid(call: Call<'_>) -> Outcome {
    let id = named(&call, 0).map_err(|_| Errno::ESRCH)?;
    family::session_of(id)
        .map(|session| session as usize)
        .ok_or(Errno::ESRCH)
}

fn setsid(call: Call<'_>) -> Outcome {
    Ok(family::new_session(call.thread.process.id())? as usize)
}

/// The low byte is all that a parent can see.
fn status(call: &Call<'_>) -> ExitStatus {
    ExitStatus::Exited(call.arg(0) as u8)
}

fn exit(call: Call<'_>) -> Outcome {
    let status = status(&call);
    if call.thread.tracee().is_none() {
        task::exit_thread(status)
    }
    if !call.regs.is_complete() {
        // Its tracer sees all registers.
        call.regs.run_again();
        return Err(Errno::IN_FRAME);
    }
    leave::exit_thread(call.thread, call.regs, status)
}

/// The caller ends on its way to user mode, like all threads of its process.
fn exit_group(call: Call<'_>) -> Outcome {
    call.thread.process.begin_exit(status(&call));
    Ok(0)
}

fn set_tid_address(call: Call<'_>) -> Outcome {
    call.thread.clear_tid.store(call.arg(0), Ordering::Relaxed);
    Ok(call.thread.id() as usize)
}

fn set_robust_list(call: Call<'_>) -> Outcome {
    if call.size(1) != ROBUST_HEAD_BYTES {
        return Err(Errno::EINVAL);
    }
    call.thread
        .robust_list
        .store(call.arg(0), Ordering::Relaxed);
    Ok(0)
}

fn get_robust_list(call: Call<'_>) -> Outcome {
    let head = match u32::try_from(call.int(0)) {
        Ok(0) => call.thread.robust_list.load(Ordering::Relaxed),
        Ok(id) => {
            let thread = task::find_thread(id).ok_or(Errno::ESRCH)?;
            task::signal::check_permission(&thread.process, None)?;
            thread.robust_list.load(Ordering::Relaxed)
        }
        Err(_) => return Err(Errno::ESRCH),
    };
    mm::user::write(call.addr(1), head)?;
    mm::user::write(call.addr(2), ROBUST_HEAD_BYTES as u64)?;
    Ok(0)
}
