//! ptrace(2): the numbers of its requests, and the layouts of what they move.
//!
//! All requests but the first three are for a thread that the caller traces and that stands
//! still. What they read and change lies in `task::ptrace`.
//!
//! Not here: debug registers, which read as zero; system-call emulation; the filters of a tracee.

mod call_info;
mod memory;
mod registers;
mod signals;

use alloc::sync::Arc;

use linux_raw_sys::general::__NR_ptrace;
use linux_raw_sys::ptrace::*;
use mm::user;
use task::ptrace::{self, Mode, Options, Tracee};
use task::signal::{self, Info, Signal};

use linux_abi::call::{Arg, Call, Entry, Outcome};
use linux_abi::errno::Errno;

/// The calls of this family.
pub const CALLS: &[Entry] = &[Entry {
    number: __NR_ptrace,
    name: "ptrace",
    args: &[Arg::Int, Arg::Int, Arg::Address, Arg::Address],
    handler: call,
}];

fn call(call: Call<'_>) -> Outcome {
    let tid = call.uint(1);
    match call.uint(0) {
        PTRACE_TRACEME => ptrace::trace_me()?,
        PTRACE_ATTACH => ptrace::attach(tid, None)?,
        PTRACE_SEIZE if call.arg(2) != 0 => return Err(Errno::EIO),
        PTRACE_SEIZE => ptrace::attach(tid, Some(options(call.arg(3))?))?,
        request => {
            let tracee = ptrace::find(&call.thread.process, tid)?;
            return ask(&call, request, &tracee);
        }
    }
    Ok(0)
}

/// Options; nobody may suspend another's filters.
fn options(bits: u64) -> Result<Options, Errno> {
    let known = u64::from(PTRACE_O_MASK & !PTRACE_O_SUSPEND_SECCOMP);
    match bits & !known {
        0 => Ok(Options::from_bits_truncate(bits as u32)),
        _ => Err(Errno::EINVAL),
    }
}

/// A request to a tracee.
fn ask(call: &Call<'_>, request: u32, tracee: &Arc<Tracee>) -> Outcome {
    let (at, data) = (call.addr(2), call.addr(3));
    match request {
        PTRACE_INTERRUPT => ptrace::interrupt(tracee)?,
        PTRACE_KILL => kill(tracee)?,
        PTRACE_CONT => go_on(call, tracee, Mode::Continue)?,
        PTRACE_SYSCALL => go_on(call, tracee, Mode::Calls)?,
        PTRACE_SINGLESTEP => go_on(call, tracee, Mode::Step)?,
        PTRACE_LISTEN => ptrace::resume(tracee, Mode::Listen, None)?,
        PTRACE_DETACH => ptrace::detach(tracee, &call.thread.process, signal_of(call)?)?,
        PTRACE_SETOPTIONS | PTRACE_OLDSETOPTIONS => tracee.set_options(options(data.0)?),
        PTRACE_GETEVENTMSG => user::write(data, tracee.message())?,
        PTRACE_PEEKTEXT | PTRACE_PEEKDATA => user::write(data, memory::peek(tracee, at)?)?,
        PTRACE_POKETEXT | PTRACE_POKEDATA => memory::poke(tracee, at, data.0)?,
        PTRACE_PEEKUSR => user::write(data, registers::peek(tracee, at.0)?)?,
        PTRACE_POKEUSR => registers::poke(tracee, at.0, data.0)?,
        PTRACE_GETREGS => user::write(data, registers::get(tracee)?)?,
        PTRACE_SETREGS => registers::set(tracee, &user::read(data)?)?,
        PTRACE_GETFPREGS | PTRACE_GETFPXREGS => registers::get_vectors(tracee, data)?,
        PTRACE_SETFPREGS | PTRACE_SETFPXREGS => registers::set_vectors(tracee, data)?,
        PTRACE_GETREGSET => registers::get_set(tracee, at.0, data)?,
        PTRACE_SETREGSET => registers::set_set(tracee, at.0, data)?,
        PTRACE_GETSIGINFO => signals::get_info(tracee, data)?,
        PTRACE_SETSIGINFO => signals::set_info(tracee, data)?,
        PTRACE_GETSIGMASK => signals::get_mask(tracee, at.0, data)?,
        PTRACE_SETSIGMASK => signals::set_mask(tracee, at.0, data)?,
        PTRACE_GET_SYSCALL_INFO => return call_info::get(tracee, at.0, data),
        _ => return Err(Errno::EIO),
    }
    Ok(0)
}

fn kill(tracee: &Tracee) -> Result<(), Errno> {
    let process = memory::process(tracee)?;
    Ok(signal::send_to_process(
        &process,
        Info::kernel(Signal::KILL),
    )?)
}

fn go_on(call: &Call<'_>, tracee: &Tracee, mode: Mode) -> Result<(), Errno> {
    Ok(ptrace::resume(tracee, mode, signal_of(call)?)?)
}

/// The signal with which the tracee goes on, if any.
fn signal_of(call: &Call<'_>) -> Result<Option<Signal>, Errno> {
    match call.arg(3) {
        0 => Ok(None),
        number => {
            let number = u32::try_from(number).map_err(|_| Errno::EIO)?;
            Signal::new(number).map(Some).ok_or(Errno::EIO)
        }
    }
}
