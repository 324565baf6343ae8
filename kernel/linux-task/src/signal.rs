//! Signals: actions, masks, sending, waiting.

use alloc::sync::Arc;

use base::{Instant, VirtAddr};
use linux_raw_sys::general::{
    __NR_kill, __NR_pause, __NR_rt_sigaction, __NR_rt_sigpending, __NR_rt_sigprocmask,
    __NR_rt_sigqueueinfo, __NR_rt_sigreturn, __NR_rt_sigsuspend, __NR_rt_sigtimedwait,
    __NR_rt_tgsigqueueinfo, __NR_sigaltstack, __NR_tgkill, __NR_tkill, SIG_BLOCK, SIG_SETMASK,
    SIG_UNBLOCK,
};
use mm::user;
use sync::Error;
use task::signal::{self, Action, ActionFlags, Handler, Info, Signal, SignalSet, code};
use task::{self, Process, family};

use crate::{sigframe, siginfo};
use linux_abi::call::{Arg, Call, Entry, Outcome};
use linux_abi::errno::Errno;
use linux_abi::timespec;

/// The calls of this family.
pub const CALLS: &[Entry] = &[
    Entry {
        number: __NR_rt_sigaction,
        name: "rt_sigaction",
        args: &[Arg::Signal, Arg::Address, Arg::Address, Arg::Size],
        handler: rt_sigaction,
    },
    Entry {
        number: __NR_rt_sigprocmask,
        name: "rt_sigprocmask",
        args: &[Arg::Int, Arg::Address, Arg::Address, Arg::Size],
        handler: rt_sigprocmask,
    },
    Entry {
        number: __NR_rt_sigreturn,
        name: "rt_sigreturn",
        args: &[],
        handler: rt_sigreturn,
    },
    Entry {
        number: __NR_rt_sigpending,
        name: "rt_sigpending",
        args: &[Arg::Address, Arg::Size],
        handler: rt_sigpending,
    },
    Entry {
        number: __NR_rt_sigsuspend,
        name: "rt_sigsuspend",
        args: &[Arg::Address, Arg::Size],
        handler: rt_sigsuspend,
    },
    Entry {
        number: __NR_rt_sigtimedwait,
        name: "rt_sigtimedwait",
        args: &[Arg::Address, Arg::Address, Arg::Address, Arg::Size],
        handler: rt_sigtimedwait,
    },
    Entry {
        number: __NR_rt_sigqueueinfo,
        name: "rt_sigqueueinfo",
        args: &[Arg::Int, Arg::Signal, Arg::Address],
        handler: rt_sigqueueinfo,
    },
    Entry {
        number: __NR_rt_tgsigqueueinfo,
        name: "rt_tgsigqueueinfo",
        args: &[Arg::Int, Arg::Int, Arg::Signal, Arg::Address],
        handler: rt_tgsigqueueinfo,
    },
    Entry {
        number: __NR_sigaltstack,
        name: "sigaltstack",
        args: &[Arg::Address, Arg::Address],
        handler: sigaltstack,
    },
    Entry {
        number: __NR_kill,
        name: "kill",
        args: &[Arg::Int, Arg::Signal],
        handler: kill,
    },
    Entry {
        number: __NR_tkill,
        name: "tkill",
        args: &[Arg::Int, Arg::Signal],
        handler: tkill,
    },
    Entry {
        number: __NR_tgkill,
        name: "tgkill",
        args: &[Arg::Int, Arg::Int, Arg::Signal],
        handler: tgkill,
    },
    Entry {
        number: __NR_pause,
        name: "pause",
        args: &[],
        handler: pause,
    },
];

/// Bytes of a signal set in memory.
const SET_BYTES: usize = 8;
const SIG_DFL: u64 = 0;
const SIG_IGN: u64 = 1;
/// Bytes below which an alternate stack is refused (`MINSIGSTKSZ`).
const ALT_STACK_BYTES_MIN: u64 = 2048;

fn check_set_bytes(bytes: usize) -> Result<(), Errno> {
    if bytes == SET_BYTES {
        Ok(())
    } else {
        Err(Errno::EINVAL)
    }
}

#[inline]
fn read_set(at: VirtAddr) -> sync::Result<SignalSet> {
    Ok(SignalSet(user::read(at)?))
}

fn signal(number: u32) -> Result<Signal, Errno> {
    Signal::new(number).ok_or(Errno::EINVAL)
}

/// A signal to send; `None` for 0, which only asks whether it could be sent.
fn optional_signal(number: u32) -> Result<Option<Signal>, Errno> {
    if number == 0 {
        Ok(None)
    } else {
        signal(number).map(Some)
    }
}

/// `struct kernel_sigaction`: handler, flags, restorer, mask.
type RawAction = [u64; 4];

fn decode_action([handler, flags, restorer, mask]: RawAction) -> Action {
    let handler = match handler {
        SIG_DFL => Handler::Default,
        SIG_IGN => Handler::Ignore,
        address => Handler::Function(address),
    };
    Action {
        handler,
        flags: ActionFlags::from_bits_truncate(flags),
        restorer,
        mask: SignalSet(mask).without(SignalSet::UNBLOCKABLE),
    }
}

fn encode_action(action: &Action) -> RawAction {
    let handler = match action.handler {
        Handler::Default => SIG_DFL,
        Handler::Ignore => SIG_IGN,
        Handler::Function(address) => address,
    };
    [handler, action.flags.bits(), action.restorer, action.mask.0]
}

fn rt_sigaction(call: Call<'_>) -> Outcome {
    let signal = signal(call.uint(0))?;
    check_set_bytes(call.size(3))?;
    let new = call
        .optional_addr(1)
        .map(user::read::<RawAction>)
        .transpose()?;
    if new.is_some() && SignalSet::UNBLOCKABLE.contains(signal) {
        return Err(Errno::EINVAL);
    }
    let old = match new {
        Some(raw) => signal::set_action(call.thread, signal, decode_action(raw)),
        None => call
            .thread
            .process
            .signals
            .actions
            .with(|actions| actions.get(signal)),
    };
    if let Some(at) = call.optional_addr(2) {
        user::write(at, encode_action(&old))?;
    }
    Ok(0)
}

fn rt_sigprocmask(call: Call<'_>) -> Outcome {
    check_set_bytes(call.size(3))?;
    let old = call.thread.signals.mask();
    if let Some(at) = call.optional_addr(1) {
        let set = read_set(at)?;
        let new = match call.uint(0) {
            SIG_BLOCK => old | set,
            SIG_UNBLOCK => old.without(set),
            SIG_SETMASK => set,
            _ => return Err(Errno::EINVAL),
        };
        signal::set_mask(call.thread, new);
    }
    if let Some(at) = call.optional_addr(2) {
        user::write(at, old.0)?;
    }
    Ok(0)
}

/// The frame says everything, RAX too; a bad one kills.
fn rt_sigreturn(call: Call<'_>) -> Outcome {
    if sigframe::pop(call.thread, call.regs).is_err() {
        signal::force(call.thread, Info::kernel(Signal::SEGV));
    }
    Err(Errno::IN_FRAME)
}

fn rt_sigpending(call: Call<'_>) -> Outcome {
    if call.size(1) > SET_BYTES {
        return Err(Errno::EINVAL);
    }
    let waiting = signal::pending_set(call.thread) & call.thread.signals.mask();
    let bytes = waiting.0.to_le_bytes();
    let wanted = bytes.get(..call.size(1)).ok_or(Errno::EINVAL)?;
    user::copy_out(wanted, call.addr(0))?;
    Ok(0)
}

fn rt_sigsuspend(call: Call<'_>) -> Outcome {
    check_set_bytes(call.size(1))?;
    let mask = read_set(call.addr(0))?;
    Err(signal::suspend(call.thread, mask).into())
}

fn pause(call: Call<'_>) -> Outcome {
    Err(signal::pause(call.thread).into())
}

fn rt_sigtimedwait(call: Call<'_>) -> Outcome {
    check_set_bytes(call.size(3))?;
    let wanted = read_set(call.addr(0))?;
    let deadline = match call.optional_addr(2) {
        Some(at) => mach::time::now() + timespec::read(at)?,
        None => Instant::NEVER,
    };
    let info = signal::await_signal(call.thread, wanted, deadline)?;
    if let Some(at) = call.optional_addr(1) {
        user::copy_out(&siginfo::encode(&info), at)?;
    }
    Ok(info.signal.number() as usize)
}

/// `stack_t`: base, flags (32 bits), length.
fn sigaltstack(call: Call<'_>) -> Outcome {
    let new = call
        .optional_addr(0)
        .map(user::read::<[u64; 3]>)
        .transpose()?;
    let old = *call.thread.signals.alt_stack.lock();
    let stack_pointer = call.regs.rsp;
    if let Some([base, flags, len]) = new {
        if old.holds(stack_pointer) {
            return Err(Errno::EPERM);
        }
        let stack = sigframe::parse_stack(base, flags & 0xffff_ffff, len).ok_or(Errno::EINVAL)?;
        if stack.len != 0 && stack.len < ALT_STACK_BYTES_MIN {
            return Err(Errno::ENOMEM);
        }
        *call.thread.signals.alt_stack.lock() = stack;
    }
    if let Some(at) = call.optional_addr(1) {
        user::write(
            at,
            [
                old.base,
                sigframe::stack_flags(&old, stack_pointer),
                old.len,
            ],
        )?;
    }
    Ok(0)
}

/// Sends a signal by `how`, or only asks whether it could.
fn send(
    process: &Process,
    signal: Option<Signal>,
    how: fn(&Process, Info) -> sync::Result<()>,
) -> sync::Result<()> {
    signal::check_permission(process, signal)?;
    match signal {
        Some(signal) if !family::is_zombie(process.id()) => {
            how(process, signal::from_current(signal, code::USER))
        }
        _ => Ok(()),
    }
}

fn kill(call: Call<'_>) -> Outcome {
    let signal = optional_signal(call.uint(1))?;
    match call.int(0) {
        0 => {
            let group = family::group_of(call.thread.process.id()).ok_or(Errno::ESRCH)?;
            send_to_all(|| family::group_members(group), signal)
        }
        -1 => {
            let own = call.thread.process.id();
            let is_other = |p: &Arc<Process>| p.id() != own && p.id() != family::INIT;
            send_to_all(|| family::processes().filter(is_other), signal)
        }
        pid @ 1.. => {
            let process = family::find(pid.unsigned_abs()).ok_or(Errno::ESRCH)?;
            send(&process, signal, signal::send_to_process)?;
            Ok(0)
        }
        group => send_to_all(|| family::group_members(group.unsigned_abs()), signal),
    }
}

/// Succeeds if one of them could be sent to.
fn send_to_all<I: Iterator<Item = Arc<Process>>>(
    processes: impl FnOnce() -> I,
    signal: Option<Signal>,
) -> Outcome {
    let mut outcome = Err(Errno::ESRCH);
    let mut note = |sent: sync::Result<()>| match sent {
        Ok(()) => outcome = Ok(0),
        Err(error) if outcome.is_err() => outcome = Err(error.into()),
        Err(_) => {}
    };
    let mut send = |process: Arc<Process>| note(send(&process, signal, signal::send_in_sweep));
    match signal {
        // Who only asks need not find all of them.
        None => processes().for_each(send),
        Some(_) => family::sweep(processes).for_each(&mut send),
    }
    outcome
}

fn tkill(call: Call<'_>) -> Outcome {
    send_to_thread(call.int(0), None, call.uint(1), |signal| {
        signal::from_current(signal, code::TKILL)
    })
}

fn tgkill(call: Call<'_>) -> Outcome {
    send_to_thread(call.int(1), Some(call.int(0)), call.uint(2), |signal| {
        signal::from_current(signal, code::TKILL)
    })
}

fn send_to_thread(
    thread: i32,
    process: Option<i32>,
    number: u32,
    info: impl FnOnce(Signal) -> Info,
) -> Outcome {
    let positive = |id: i32| {
        u32::try_from(id)
            .ok()
            .filter(|&id| id != 0)
            .ok_or(Errno::EINVAL)
    };
    let (thread, process) = (positive(thread)?, process.map(positive).transpose()?);
    let signal = optional_signal(number)?;
    let thread = task::find_thread(thread).ok_or(Errno::ESRCH)?;
    if process.is_some_and(|id| id != thread.process.id()) {
        return Err(Errno::ESRCH);
    }
    signal::check_permission(&thread.process, signal)?;
    if let Some(signal) = signal {
        signal::send_to_thread(&thread, info(signal))?;
    }
    Ok(0)
}

/// The sender's own information; only the kernel may say that the kernel sends.
pub fn read_info(call: &Call<'_>, at: VirtAddr, target: u32, signal: Signal) -> sync::Result<Info> {
    let mut bytes = [0; siginfo::BYTES];
    user::copy_in(at, &mut bytes)?;
    let info = siginfo::decode_queued(&bytes, signal);
    let forged = info.code >= 0 || info.code == code::TKILL;
    if forged && target != call.thread.process.id() {
        return Err(Error::NotPermitted);
    }
    Ok(info)
}

fn rt_sigqueueinfo(call: Call<'_>) -> Outcome {
    let pid = u32::try_from(call.int(0)).map_err(|_| Errno::ESRCH)?;
    let number = optional_signal(call.uint(1))?;
    let process = family::find(pid).ok_or(Errno::ESRCH)?;
    signal::check_permission(&process, number)?;
    if let Some(signal) = number {
        let info = read_info(&call, call.addr(2), pid, signal)?;
        signal::send_to_process(&process, info)?;
    }
    Ok(0)
}

fn rt_tgsigqueueinfo(call: Call<'_>) -> Outcome {
    let pid = u32::try_from(call.int(0)).map_err(|_| Errno::EINVAL)?;
    let info = match optional_signal(call.uint(2))? {
        Some(signal) => read_info(&call, call.addr(3), pid, signal)?,
        None => Info::kernel(Signal::KILL),
    };
    send_to_thread(call.int(1), Some(call.int(0)), call.uint(2), |_| info)
}
