//! process_vm_readv, process_vm_writev, pidfd_getfd: what another process has.

use base::VirtAddr;
use linux_raw_sys::general::{
    __NR_pidfd_getfd, __NR_process_vm_readv, __NR_process_vm_writev, O_CLOEXEC,
};
use mm::io::UserRange;
use mm::{AddressSpace, Reach};
use sync::{Error, Result};
use task::{self, Caller, check_access, check_process_access, process_of};

use linux_abi::call::{Arg, Call, Entry, Outcome};
use linux_abi::descriptor::only;
use linux_abi::errno::Errno;
use linux_abi::iovec;

const VM_ARGS: &[Arg] = &[
    Arg::Int,
    Arg::Address,
    Arg::Size,
    Arg::Address,
    Arg::Size,
    Arg::Flags,
];

/// The calls of this family.
pub const CALLS: &[Entry] = &[
    Entry {
        number: __NR_process_vm_readv,
        name: "process_vm_readv",
        args: VM_ARGS,
        handler: process_vm_readv,
    },
    Entry {
        number: __NR_process_vm_writev,
        name: "process_vm_writev",
        args: VM_ARGS,
        handler: process_vm_writev,
    },
    Entry {
        number: __NR_pidfd_getfd,
        name: "pidfd_getfd",
        args: &[Arg::Fd, Arg::Int, Arg::Flags],
        handler: pidfd_getfd,
    },
];

/// Copies a piece at an address of the other process; returns its bytes, 0 for none left.
type Step<'a> = &'a mut dyn FnMut(&AddressSpace, VirtAddr, usize) -> Result<usize>;

fn process_vm_readv(call: Call<'_>) -> Outcome {
    only(call.uint(5), 0)?;
    let mut here = iovec::sink(call.addr(1), call.size(2))?;
    if here.remaining() == 0 {
        return Ok(0);
    }
    pass(&call, &mut |space, at, len| {
        space.peek_piece(at, len, &mut here)
    })
}

fn process_vm_writev(call: Call<'_>) -> Outcome {
    only(call.uint(5), 0)?;
    let mut here = iovec::source(call.addr(1), call.size(2))?;
    if here.remaining() == 0 {
        return Ok(0);
    }
    pass(&call, &mut |space, at, len| {
        space.poke_piece(at, len, &mut here, Reach::Program)
    })
}

/// Takes steps over the other process' ranges. Its memory is taken before the right to it is
/// asked, so that an exec between the two does not lend the right to another program.
fn pass(call: &Call<'_>, step: Step<'_>) -> Outcome {
    let there = iovec::read_ranges(call.addr(3), call.size(4))?;
    if there.iter().all(|range| range.len == 0) {
        return Ok(0);
    }
    let id = u32::try_from(call.int(0)).map_err(|_| Errno::ESRCH)?;
    let thread = task::find_thread(id).ok_or(Errno::ESRCH)?;
    let space = thread.process.space.get();
    check_access(&thread, Caller::Real)?;
    let mut done = 0;
    for range in &there {
        match pass_range(&space, range, step) {
            (count, Err(error)) if done + count == 0 => return Err(error.into()),
            (count, Ok(())) if count == range.len => done += count,
            (count, _) => return Ok(done + count),
        }
    }
    Ok(done)
}

/// The bytes that passed, and why not more.
fn pass_range(space: &AddressSpace, range: &UserRange, step: Step<'_>) -> (usize, Result<()>) {
    let mut done = 0;
    while done < range.len {
        let at = VirtAddr(range.start.0.wrapping_add(done as u64));
        match step(space, at, range.len - done) {
            Ok(0) => break,
            Ok(count) => done += count,
            Err(error) => return (done, Err(error)),
        }
    }
    (done, Ok(()))
}

fn pidfd_getfd(call: Call<'_>) -> Outcome {
    only(call.uint(2), 0)?;
    let process = process_of(&*call.file(0)?)?;
    let thread = process.first_thread().ok_or(Error::NoSuchProcess)?;
    check_process_access(&process, Caller::Real)?;
    let fd = u32::try_from(call.int(1)).map_err(|_| Errno::EBADF)?;
    let open = thread.files.get().get_any(fd)?;
    Ok(call.new_fd(open, O_CLOEXEC)?)
}
