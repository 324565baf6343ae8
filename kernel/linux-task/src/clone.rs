//! clone, clone3, fork, vfork: new threads and processes.

use base::VirtAddr;
use linux_raw_sys::general::{__NR_clone, __NR_clone3, __NR_fork, __NR_vfork, O_CLOEXEC};
use mach::trap::UserRegs;
use mm::user;
use sched::Flags;
use sync::Error;
use task::ptrace::{self, Event};
use task::signal::Signal;
use task::{self, Child, Clone, CloneFlags, ExitStatus};
use vfs::file::StatusFlags;

use crate::{leave, namespace};
use linux_abi::call::{Arg, Call, Entry, Outcome};
use linux_abi::errno::Errno;
use linux_abi::restart;

/// The calls of this family.
pub const CALLS: &[Entry] = &[
    Entry {
        number: __NR_clone,
        name: "clone",
        args: &[
            Arg::Flags,
            Arg::Address,
            Arg::Address,
            Arg::Address,
            Arg::Address,
        ],
        handler: clone,
    },
    Entry {
        number: __NR_clone3,
        name: "clone3",
        args: &[Arg::Address, Arg::Size],
        handler: clone3,
    },
    Entry {
        number: __NR_fork,
        name: "fork",
        args: &[],
        handler: fork,
    },
    Entry {
        number: __NR_vfork,
        name: "vfork",
        args: &[],
        handler: vfork,
    },
];

/// The part of the old flags that is the signal at exit.
const EXIT_SIGNAL: u64 = 0xff;
/// Bytes of the first published `struct clone_args`.
const ARGS_BYTES_MIN: usize = 64;
/// Words of the one we know.
const ARGS_WORDS: usize = 11;
/// A program that its tracer steps through makes a child that does not step.
const TRAP_FLAG: u64 = 1 << 8;

/// A request as clone(2) and clone3(2) both make it.
struct CloneArgs {
    flags: u64,
    exit_signal: u64,
    stack: u64,
    parent_tid: u64,
    child_tid: u64,
    tls: u64,
    /// Where the descriptor of the child goes (CLONE_PIDFD).
    pidfd: u64,
}

fn clone(call: Call<'_>) -> Outcome {
    let args = CloneArgs {
        flags: call.arg(0) & 0xffff_ffff & !EXIT_SIGNAL,
        exit_signal: call.arg(0) & EXIT_SIGNAL,
        stack: call.arg(1),
        parent_tid: call.arg(2),
        child_tid: call.arg(3),
        tls: call.arg(4),
        pidfd: call.arg(2),
    };
    let both = CloneFlags::PIDFD | CloneFlags::PARENT_SETTID;
    if args.flags & both.bits() == both.bits() {
        return Err(Errno::EINVAL);
    }
    make(call, &args)
}

fn fork(call: Call<'_>) -> Outcome {
    simple(call, CloneFlags::empty())
}

fn vfork(call: Call<'_>) -> Outcome {
    simple(call, CloneFlags::VM | CloneFlags::VFORK)
}

fn simple(call: Call<'_>, flags: CloneFlags) -> Outcome {
    let exit_signal = u64::from(Signal::CHLD.number());
    let args = CloneArgs {
        flags: flags.bits(),
        exit_signal,
        stack: 0,
        parent_tid: 0,
        child_tid: 0,
        tls: 0,
        pidfd: 0,
    };
    make(call, &args)
}

/// `struct clone_args`: flags, pidfd, child_tid, parent_tid, exit_signal, stack,
/// stack_size, tls, set_tid, set_tid_size, cgroup.
fn clone3(call: Call<'_>) -> Outcome {
    let bytes = call.size(1);
    if bytes < ARGS_BYTES_MIN {
        return Err(Errno::EINVAL);
    }
    if bytes > ARGS_WORDS * 8 {
        return Err(Errno::E2BIG);
    }
    let mut words = [0; ARGS_WORDS];
    for (index, word) in words.iter_mut().take(bytes / 8).enumerate() {
        *word = user::read(call.addr(0) + index as u64 * 8)?;
    }
    let [
        flags,
        pidfd,
        child_tid,
        parent_tid,
        exit_signal,
        stack,
        stack_len,
        tls,
        _,
        set_tids,
        _,
    ] = words;
    let stack_given = stack != 0;
    if stack_given != (stack_len != 0) || set_tids != 0 || exit_signal & !EXIT_SIGNAL != 0 {
        return Err(Errno::EINVAL);
    }
    if flags & EXIT_SIGNAL != 0 || flags & CloneFlags::DETACHED.bits() != 0 {
        return Err(Errno::EINVAL);
    }
    let stack = stack.checked_add(stack_len).ok_or(Errno::EINVAL)?;
    make(
        call,
        &CloneArgs {
            flags,
            exit_signal,
            stack,
            parent_tid,
            child_tid,
            tls,
            pidfd,
        },
    )
}

fn make(call: Call<'_>, args: &CloneArgs) -> Outcome {
    if !call.regs.is_complete() {
        // The child goes on with all registers of the caller.
        call.regs.run_again();
        return Err(Errno::IN_FRAME);
    }
    namespace::check_new("clone", args.flags)?;
    let flags = CloneFlags::from_bits(args.flags).ok_or(Errno::EINVAL)?;
    if flags.contains(CloneFlags::PIDFD | CloneFlags::THREAD) {
        return Err(Errno::EINVAL);
    }
    let exit_signal = match args.exit_signal {
        0 => None,
        number => Some(Signal::new(number as u32).ok_or(Errno::EINVAL)?),
    };
    let mut regs: UserRegs = *call.regs;
    regs.rax = 0;
    if call.thread.flags().contains(Flags::STEP) {
        regs.rflags &= !TRAP_FLAG;
    }
    if args.stack != 0 {
        regs.rsp = args.stack;
    }
    let request = Clone {
        flags,
        exit_signal: exit_signal.filter(|_| !flags.contains(CloneFlags::THREAD)),
        parent_tid: VirtAddr(args.parent_tid),
        child_tid: VirtAddr(args.child_tid),
        tls: args.tls,
        regs,
        entry: start,
    };
    let child = match task::clone(&request) {
        Ok(child) => child,
        Err(Error::Interrupted(_)) => return restart::always(call),
        Err(Error::WouldBlock) => return Err(Errno::EAGAIN),
        Err(other) => return Err(other.into()),
    };
    let id = child.id();
    let told = tell_descriptor(&call, flags, &child, VirtAddr(args.pidfd));
    if told.is_err() {
        child.process().begin_exit(ExitStatus::Killed(Signal::KILL));
    }
    let lent = child.launch();
    told?;
    ptrace::event(call.thread, call.regs, request.event(), u64::from(id));
    if let Some(lent) = lent {
        lent.wait();
        ptrace::event(call.thread, call.regs, Event::VforkDone, u64::from(id));
    }
    Ok(id as usize)
}

/// Stores a descriptor of the child at `at` (CLONE_PIDFD).
fn tell_descriptor(
    call: &Call<'_>,
    flags: CloneFlags,
    child: &Child,
    at: VirtAddr,
) -> sync::Result<()> {
    if !flags.contains(CloneFlags::PIDFD) {
        return Ok(());
    }
    let file = task::pid_file(child.process().clone());
    let fd = call.open_fd(file, StatusFlags::RDWR, O_CLOEXEC)?;
    user::write(at, fd as u32)
}

/// Where a new thread begins; it ends in the program.
fn start(_: usize) -> ! {
    if let Some(mut regs) = task::begin_thread() {
        leave::before_user(&task::current(), &mut regs);
        mach::task::enter_user(&regs);
    }
    // tidy: `task::clone` stores the registers before the thread is launched.
    unreachable!("a cloned thread has registers to start with")
}
