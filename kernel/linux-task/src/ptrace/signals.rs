//! What a tracer sees and changes of its tracee's signals.

use base::VirtAddr;
use mm::user;
use task::ptrace::{CallStop, Stop, Stopped, Tracee};
use task::signal::{Info, Origin, Signal, SignalSet};

use crate::siginfo;
use linux_abi::errno::Errno;

/// Bytes of the kernel's `sigset_t`.
const SET_BYTES: u64 = 8;

/// The signal that the tracee stopped for, or one that says what else it stopped for.
///
/// Errors: EINVAL if its process was stopped, where there is none.
fn info_of(stopped: &Stopped) -> Result<Info, Errno> {
    let code = match stopped.stop {
        Stop::Signal(info) => return Ok(info),
        Stop::Group(_) => return Err(Errno::EINVAL),
        Stop::Call(CallStop::Entry | CallStop::Exit) | Stop::Event(_) | Stop::Trap => stopped.code,
    };
    Ok(Info {
        signal: Signal::TRAP,
        code: code as i32,
        origin: Origin::Kernel,
    })
}

/// PTRACE_GETSIGINFO.
pub fn get_info(tracee: &Tracee, to: VirtAddr) -> Result<(), Errno> {
    let info = tracee.with_stopped(|stopped| info_of(stopped))??;
    Ok(user::copy_out(&siginfo::encode(&info), to)?)
}

/// PTRACE_SETSIGINFO: what the handler will be told. What is written back as it was read stays.
pub fn set_info(tracee: &Tracee, from: VirtAddr) -> Result<(), Errno> {
    let mut bytes = [0; siginfo::BYTES];
    user::copy_in(from, &mut bytes)?;
    tracee.with_stopped(|stopped| {
        let Stop::Signal(info) = &mut stopped.stop else {
            return Err(Errno::EINVAL);
        };
        if bytes != siginfo::encode(info) {
            *info = siginfo::decode_queued(&bytes, info.signal);
        }
        Ok(())
    })?
}

/// PTRACE_GETSIGMASK.
pub fn get_mask(tracee: &Tracee, len: u64, to: VirtAddr) -> Result<(), Errno> {
    if len != SET_BYTES {
        return Err(Errno::EINVAL);
    }
    Ok(user::write(to, tracee.mask()?.0)?)
}

/// PTRACE_SETSIGMASK.
pub fn set_mask(tracee: &Tracee, len: u64, from: VirtAddr) -> Result<(), Errno> {
    if len != SET_BYTES {
        return Err(Errno::EINVAL);
    }
    Ok(tracee.set_mask(SignalSet(user::read(from)?))?)
}
