//! wait4 and waitid: hearing of children.

use base::{Duration, VirtAddr};
use linux_raw_sys::general::{
    __NR_wait4, __NR_waitid, __WALL, __WCLONE, __WNOTHREAD, P_ALL, P_PGID, P_PID, P_PIDFD,
    WCONTINUED, WEXITED, WNOHANG, WNOWAIT, WUNTRACED,
};
use mm::user;
use sync::{Error, Restart, Wait};
use task::family::{self, WaitOptions, WaitTarget};
use task::signal::{DefaultAction, Info, Origin, Signal, code};
use task::{Change, ExitStatus, Report, Usage, process_of};

use crate::siginfo;
use linux_abi::call::{Arg, Call, Entry, Outcome};
use linux_abi::errno::Errno;
use linux_abi::timespec;

/// The calls of this family.
pub const CALLS: &[Entry] = &[
    Entry {
        number: __NR_wait4,
        name: "wait4",
        args: &[Arg::Int, Arg::Address, Arg::Flags, Arg::Address],
        handler: wait4,
    },
    Entry {
        number: __NR_waitid,
        name: "waitid",
        args: &[Arg::Int, Arg::Int, Arg::Address, Arg::Flags, Arg::Address],
        handler: waitid,
    },
];

const COMMON: u32 = WNOHANG | __WALL | __WCLONE | __WNOTHREAD;
const CORE_BIT: u32 = 0x80;
const STOPPED: u32 = 0x7f;
const CONTINUED: u32 = 0xffff;

/// Words of a `struct rusage`.
pub const USAGE_WORDS: usize = 18;

/// `struct rusage`: user time, system time, then 14 counters.
pub fn encode_usage(usage: &Usage) -> [i64; USAGE_WORDS] {
    let mut words = [0; USAGE_WORDS];
    let micros = |nanos| timespec::words_micros(Duration::from_nanos(nanos));
    let counter = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    [words[0], words[1]] = micros(usage.cpu.user_ns);
    [words[2], words[3]] = micros(usage.cpu.system_ns);
    words[4] = counter(usage.resident_bytes_max / 1024);
    words[8] = counter(usage.minor_faults);
    words[9] = counter(usage.major_faults);
    words[16] = counter(usage.switches_voluntary);
    words[17] = counter(usage.switches_forced);
    words
}

fn wait_options(flags: u32) -> WaitOptions {
    WaitOptions {
        ended: flags & WEXITED != 0,
        stopped: flags & WUNTRACED != 0,
        continued: flags & WCONTINUED != 0,
        silent: if flags & __WALL != 0 {
            None
        } else {
            Some(flags & __WCLONE != 0)
        },
        keep: flags & WNOWAIT != 0,
    }
}

/// Waits, or looks once; `None` if nothing has happened yet.
fn wait(call: &Call<'_>, target: WaitTarget, flags: u32) -> Result<Option<Report>, Errno> {
    let process = &call.thread.process;
    let options = wait_options(flags);
    if flags & WNOHANG != 0 {
        return Ok(family::poll_children(process, target, options)?);
    }
    let how = Wait::INTERRUPTIBLE.restart(Restart::IfAsked);
    let found = process.children_changed.wait(how, || {
        family::poll_children(process, target, options).transpose()
    });
    match found {
        Ok(report) => Ok(Some(report?)),
        Err(error) => Err(error.into()),
    }
}

fn wait4(call: Call<'_>) -> Outcome {
    let flags = call.uint(2);
    if flags & !(COMMON | WUNTRACED | WCONTINUED) != 0 {
        return Err(Errno::EINVAL);
    }
    let target = match call.int(0) {
        -1 => WaitTarget::Any,
        0 => WaitTarget::Group(own_group(&call)?),
        pid @ 1.. => WaitTarget::Process(pid.unsigned_abs()),
        i32::MIN => return Err(Errno::ESRCH),
        group => WaitTarget::Group(group.unsigned_abs()),
    };
    let Some(report) = wait(&call, target, flags | WEXITED)? else {
        return Ok(0);
    };
    if let Some(at) = call.optional_addr(1) {
        user::write(at, encode_status(report.change))?;
    }
    tell_usage(call.optional_addr(3), &report)?;
    Ok(report.pid as usize)
}

fn own_group(call: &Call<'_>) -> Result<u32, Errno> {
    family::group_of(call.thread.process.id()).ok_or(Errno::ESRCH)
}

fn tell_usage(at: Option<VirtAddr>, report: &Report) -> Result<(), Error> {
    at.map_or(Ok(()), |at| user::write(at, encode_usage(&report.usage)))
}

/// As the macros of wait(2) take it apart.
pub fn encode_status(change: Change) -> u32 {
    match change {
        Change::Ended(ExitStatus::Exited(status)) => u32::from(status) << 8,
        Change::Ended(ExitStatus::Killed(signal)) => {
            let core = signal.default_action() == DefaultAction::Core;
            signal.number() | if core { CORE_BIT } else { 0 }
        }
        Change::Stopped(signal) => signal.number() << 8 | STOPPED,
        Change::Trapped(status) => status << 8 | STOPPED,
        Change::Continued => CONTINUED,
    }
}

/// Whatever comes of it, the program's structure is filled in, with zeros for nothing.
fn waitid(call: Call<'_>) -> Outcome {
    let found = find_child(&call);
    if let Ok(Some(report)) = &found {
        tell_usage(call.optional_addr(4), report)?;
    }
    if let Some(at) = call.optional_addr(2) {
        let bytes = match &found {
            Ok(Some(report)) => siginfo::encode(&describe(report)),
            _ => [0; siginfo::BYTES],
        };
        user::copy_out(&bytes, at)?;
    }
    found.map(|_| 0)
}

/// What waitid(2) asks for; `None` if nothing has happened yet and it does not wait.
fn find_child(call: &Call<'_>) -> Result<Option<Report>, Errno> {
    let flags = call.uint(3);
    let events = WEXITED | WUNTRACED | WCONTINUED;
    if flags & !(COMMON | events | WNOWAIT) != 0 || flags & events == 0 {
        return Err(Errno::EINVAL);
    }
    let id = || {
        let id = u32::try_from(call.int(1)).ok().filter(|&id| id != 0);
        id.ok_or(Errno::EINVAL)
    };
    let mut may_wait = true;
    let target = match call.uint(0) {
        P_ALL => WaitTarget::Any,
        P_PID => WaitTarget::Process(id()?),
        P_PIDFD if call.int(1) < 0 => return Err(Errno::EINVAL),
        P_PIDFD => {
            let open = call.file(1)?;
            may_wait = !open.is_nonblocking();
            WaitTarget::Process(process_of(&open)?.id())
        }
        P_PGID if call.int(1) == 0 => WaitTarget::Group(own_group(call)?),
        P_PGID => WaitTarget::Group(id()?),
        _ => return Err(Errno::EINVAL),
    };
    let report = match may_wait {
        true => wait(call, target, flags)?,
        false => wait(call, target, flags | WNOHANG)?,
    };
    if report.is_none() && flags & WNOHANG == 0 {
        return Err(Errno::EAGAIN);
    }
    Ok(report)
}

fn describe(report: &Report) -> Info {
    let (code, status) = match report.change {
        Change::Ended(ExitStatus::Exited(status)) => (code::CHILD_EXITED, u32::from(status)),
        Change::Ended(ExitStatus::Killed(signal)) => {
            let core = signal.default_action() == DefaultAction::Core;
            (
                if core {
                    code::CHILD_DUMPED
                } else {
                    code::CHILD_KILLED
                },
                signal.number(),
            )
        }
        Change::Stopped(signal) => (code::CHILD_STOPPED, signal.number()),
        Change::Trapped(status) => (code::CHILD_TRAPPED, status),
        Change::Continued => (code::CHILD_CONTINUED, Signal::CONT.number()),
    };
    let origin = Origin::Child {
        pid: report.pid,
        uid: report.uid,
        status,
        used: report.usage.cpu,
    };
    Info {
        signal: Signal::CHLD,
        code,
        origin,
    }
}
