//! io_uring_enter.

use alloc::sync::Arc;

use base::{Instant, VirtAddr};
use kernel_uring::{Ring, Submitter};
use linux_abi::call::{Arg, Call, Entry, Outcome};
use linux_abi::errno::Errno;
use linux_abi::{sigmask, timespec};
use linux_raw_sys::general::__NR_io_uring_enter;
use linux_raw_sys::io_uring::{IORING_ENTER_EXT_ARG, IORING_ENTER_GETEVENTS};
use mm::user;
use sync::{Error, Restart, Wait};

use crate::with_ring;

/// The calls of this family.
pub const CALLS: &[Entry] = &[Entry {
    number: __NR_io_uring_enter,
    name: "io_uring_enter",
    args: &[
        Arg::Fd,
        Arg::Int,
        Arg::Int,
        Arg::Flags,
        Arg::Address,
        Arg::Size,
    ],
    handler: enter,
}];

fn enter(call: Call<'_>) -> Outcome {
    let known = IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG;
    if call.uint(3) & !known != 0 {
        return Err(Errno::EINVAL);
    }
    with_ring(&call, |ring| enter_ring(&call, ring))
}

fn enter_ring(call: &Call<'_>, ring: &Arc<Ring>) -> Outcome {
    if ring.registered.lock().is_disabled {
        return Err(Errno::EBADFD);
    }
    let submitter = Submitter::of(call.thread)?;
    let active = submitter.active(call.thread);
    let mut submitted = 0;
    if call.uint(1) != 0 {
        submitted = ring.submit(call.thread, &submitter, call.uint(1))?;
        submitter.work(call.thread);
        if submitted != call.uint(1) {
            return Ok(submitted as usize);
        }
    }
    if call.uint(3) & IORING_ENTER_GETEVENTS != 0 {
        let waited = wait(call, ring, &submitter);
        if submitted == 0 {
            waited?;
        }
    }
    drop(active);
    Ok(submitted as usize)
}

fn wait(call: &Call<'_>, ring: &Ring, submitter: &Submitter) -> Result<(), Errno> {
    let (mask, mask_bytes, deadline) = argument(call)?;
    sigmask::exchange(call, mask, mask_bytes)?;
    let how = Wait::INTERRUPTIBLE.restart(Restart::Never).until(deadline);
    match ring.wait(submitter, call.thread, call.uint(2), how) {
        Err(Error::TimedOut) => Err(Errno::ETIME),
        waited => Ok(waited?),
    }
}

/// The signal mask, its size and the deadline.
fn argument(call: &Call<'_>) -> Result<(u64, u64, Instant), Errno> {
    if call.uint(3) & IORING_ENTER_EXT_ARG == 0 {
        return Ok((call.arg(4), call.arg(5), Instant::NEVER));
    }
    if call.size(5) != size_of::<[u64; 3]>() {
        return Err(Errno::EINVAL);
    }
    let [mask, sizes, time] = user::read::<[u64; 3]>(call.addr(4))?;
    let deadline = match time {
        0 => Instant::NEVER,
        at => mach::time::now() + timespec::read(VirtAddr(at))?,
    };
    Ok((mask, u64::from(sizes as u32), deadline))
}
