//! `--strace`: each call on the kernel's log, decoded by the kinds of its arguments.

use alloc::string::String;
use core::fmt::Write;

use base::VirtAddr;
use mm::user;
use sched::Flags;
use task::Thread;

use crate::table;
use linux_abi::call::{Arg, Call, Entry, Handler, Outcome};
use linux_abi::errno::Errno;

/// Bytes of a string that are shown.
const SHOWN_BYTES_MAX: usize = 64;
/// The number of `AT_FDCWD` as a 32-bit word.
const CURRENT_DIRECTORY: i32 = -100;

/// Reports the calls of `thread`, and of the threads and processes that it makes.
pub fn enable(thread: &Thread) {
    thread.set_flags(Flags::TRACE);
}

/// Runs the call and reports it. What does not return is reported before.
pub fn trace(call: Call<'_>, run: Handler) -> Outcome {
    let mut line = String::new();
    let number = call.regs.orig_rax;
    match table::lookup(number) {
        Some(entry) => describe(&mut line, entry, &call),
        None => push(&mut line, format_args!("syscall_{number:#x}()")),
    }
    let id = call.thread.id();
    if never_returns(number) {
        mach::klog!("[{id}] {line} = ?");
    }
    let outcome = run(call);
    match outcome {
        Ok(value) if value > 0xffff => mach::klog!("[{id}] {line} = {value:#x}"),
        Ok(value) => mach::klog!("[{id}] {line} = {value}"),
        Err(Errno::IN_FRAME) => mach::klog!("[{id}] {line} = 0"),
        Err(errno) => mach::klog!("[{id}] {line} = -1 {}", errno.name()),
    }
    outcome
}

fn never_returns(number: u64) -> bool {
    use linux_raw_sys::general::{__NR_exit, __NR_exit_group};
    [__NR_exit, __NR_exit_group]
        .map(u64::from)
        .contains(&number)
}

/// Writing to a string cannot fail.
fn push(line: &mut String, text: core::fmt::Arguments<'_>) {
    let _ = line.write_fmt(text);
}

fn describe(line: &mut String, entry: &Entry, call: &Call<'_>) {
    push(line, format_args!("{}(", entry.name));
    for (index, kind) in entry.args.iter().enumerate() {
        if index != 0 {
            line.push_str(", ");
        }
        argument(line, *kind, call, index);
    }
    line.push(')');
}

fn argument(line: &mut String, kind: Arg, call: &Call<'_>, index: usize) {
    let value = call.arg(index);
    match kind {
        Arg::DirFd if value as i32 == CURRENT_DIRECTORY => line.push_str("AT_FDCWD"),
        Arg::Fd | Arg::DirFd | Arg::Int => push(line, format_args!("{}", value as i32)),
        Arg::Size => push(line, format_args!("{value}")),
        Arg::Flags => push(line, format_args!("{value:#x}")),
        Arg::Mode => push(line, format_args!("0{value:o}")),
        Arg::Address if value == 0 => line.push_str("NULL"),
        Arg::Address => push(line, format_args!("{value:#x}")),
        Arg::Path => text(line, VirtAddr(value), usize::MAX),
        Arg::Buffer => text(line, VirtAddr(value), call.size(index + 1)),
        Arg::Signal => match task::signal::Signal::new(value as u32) {
            Some(signal) => line.push_str(signal.name()),
            None => push(line, format_args!("{value}")),
        },
    }
}

/// Shows bytes of the program up to `len`, or to a zero where `len` is open.
fn text(line: &mut String, at: VirtAddr, len: usize) {
    let mut bytes = [0; SHOWN_BYTES_MAX];
    let wanted = len.min(SHOWN_BYTES_MAX);
    let read = (0..wanted).take_while(|&index| {
        let Some(byte) = bytes.get_mut(index..=index) else {
            return false;
        };
        user::copy_in(at + index as u64, byte).is_ok() && (len != usize::MAX || *byte != [0])
    });
    let count = read.count();
    if count == 0 && wanted != 0 && at.0 == 0 {
        line.push_str("NULL");
        return;
    }
    line.push('"');
    for byte in bytes.iter().take(count) {
        push(line, format_args!("{}", byte.escape_ascii()));
    }
    line.push('"');
    if count == SHOWN_BYTES_MAX && len > SHOWN_BYTES_MAX {
        line.push_str("...");
    }
}
