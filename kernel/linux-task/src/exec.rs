//! execve and execveat.

use alloc::vec::Vec;

use base::VirtAddr;
use exec::{Arguments, Start, auxv};
use linux_raw_sys::general::{
    __NR_execve, __NR_execveat, AT_EMPTY_PATH, AT_FDCWD, AT_SYMLINK_NOFOLLOW,
};
use mach::mem::fallible::TryPush;
use mach::trap::UserRegs;
use mm::user;
use sync::{Error, Result};
use task::ptrace::{self, Event};
use task::signal::{self, Signal};
use vfs::{self, Walk};

use crate::{rseq, sigframe};
use linux_abi::call::{Arg, Call, Entry, Outcome};
use linux_abi::errno::Errno;

/// The calls of this family.
pub const CALLS: &[Entry] = &[
    Entry {
        number: __NR_execve,
        name: "execve",
        args: &[Arg::Path, Arg::Address, Arg::Address],
        handler: execve,
    },
    Entry {
        number: __NR_execveat,
        name: "execveat",
        args: &[
            Arg::DirFd,
            Arg::Path,
            Arg::Address,
            Arg::Address,
            Arg::Flags,
        ],
        handler: execveat,
    },
];

/// The longest argument (Linux's MAX_ARG_STRLEN).
const ARGUMENT_BYTES_MAX: usize = 128 << 10;

fn execve(call: Call<'_>) -> Outcome {
    let path = call.path(0)?;
    let open = vfs::open_for_exec(None, &path, Walk::FOLLOW)?;
    let (values, environment) = (call.addr(1), call.addr(2));
    run(call, open, path, values, environment)
}

fn execveat(call: Call<'_>) -> Outcome {
    let flags = call.uint(4);
    if flags & !(AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) != 0 {
        return Err(Errno::EINVAL);
    }
    let mut walk = Walk::empty();
    walk.set(Walk::FOLLOW, flags & AT_SYMLINK_NOFOLLOW == 0);
    walk.set(Walk::EMPTY, flags & AT_EMPTY_PATH != 0);
    let path = call.path(1)?;
    let start = call.start(0, &path)?;
    let open = vfs::open_for_exec(start.as_ref(), &path, walk)?;
    let from_descriptor = call.int(0) != AT_FDCWD && path.first() != Some(&b'/');
    let shown = match (from_descriptor, path.is_empty()) {
        (false, _) => path,
        (true, true) => alloc::format!("/dev/fd/{}", call.int(0)).into_bytes(),
        (true, false) => {
            let mut shown = alloc::format!("/dev/fd/{}/", call.int(0)).into_bytes();
            shown.extend_from_slice(&path);
            shown
        }
    };
    let (values, environment) = (call.addr(2), call.addr(3));
    run(call, open, shown, values, environment)
}

fn run(
    mut call: Call<'_>,
    open: alloc::sync::Arc<vfs::file::OpenFile>,
    path: Vec<u8>,
    values: VirtAddr,
    environment: VirtAddr,
) -> Outcome {
    let mut room = exec::arguments_bytes_max();
    let mut values = read_strings(values, &mut room)?;
    let environment = read_strings(environment, &mut room)?;
    if values.is_empty() {
        // A program may count on its own name being there.
        values.push(Vec::new());
    }
    let arguments = Arguments {
        path,
        values,
        environment,
    };
    let former = call.thread.id();
    let start = exec::exec(open, arguments, &abi_entries())?;
    *call.regs = registers(start);
    tell_tracer(&mut call, former);
    Err(Errno::IN_FRAME)
}

/// A tracer that does not ask for the event gets a signal, unless it has seized the thread.
fn tell_tracer(call: &mut Call<'_>, former: u32) {
    let Some(tracee) = call.thread.tracee() else {
        return;
    };
    let is_told = ptrace::event(call.thread, call.regs, Event::Exec, u64::from(former));
    if !is_told && !tracee.is_seized {
        let trap = signal::from_current(Signal::TRAP, signal::code::USER);
        // A standard signal always fits.
        let _ = signal::send_to_thread(&call.thread.arc(), trap);
    }
}

/// The registers of a program that starts.
pub fn registers(start: Start) -> UserRegs {
    UserRegs::new(start.entry, start.stack)
}

/// Reads an array of pointers to strings that ends with a null pointer.
fn read_strings(at: VirtAddr, room: &mut u64) -> Result<Vec<Vec<u8>>> {
    let mut strings = Vec::new();
    if at.0 == 0 {
        return Ok(strings);
    }
    let mut next = at;
    loop {
        let pointer: u64 = user::read(next)?;
        if pointer == 0 {
            return Ok(strings);
        }
        let string = user::read_string(VirtAddr(pointer), ARGUMENT_BYTES_MAX)?
            .ok_or(Error::ArgumentsTooLong)?;
        let taken = string.len() as u64 + 1 + 8;
        *room = room.checked_sub(taken).ok_or(Error::ArgumentsTooLong)?;
        strings.try_push(string).map_err(Error::from)?;
        next = next + 8;
    }
}

/// The entries of the auxiliary vector that describe this ABI and the processor.
pub fn abi_entries() -> [(u64, u64); 5] {
    let (hwcap, hwcap2) = mach::cpu::capabilities();
    [
        (auxv::HWCAP, u64::from(hwcap)),
        (auxv::HWCAP2, u64::from(hwcap2)),
        (auxv::MINSIGSTKSZ, sigframe::stack_bytes_min()),
        (auxv::RSEQ_FEATURE_SIZE, u64::from(rseq::FEATURE_BYTES)),
        (auxv::RSEQ_ALIGN, rseq::AREA_ALIGN),
    ]
}

/// Opens and runs `arguments.path` in the current process, which has no program yet or
/// loses the one it has.
pub fn open_and_exec(arguments: Arguments) -> Result<UserRegs> {
    let open = vfs::open_for_exec(None, &arguments.path, Walk::FOLLOW)?;
    let start = exec::exec(open, arguments, &abi_entries())?;
    Ok(registers(start))
}
