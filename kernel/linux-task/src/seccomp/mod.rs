//! seccomp(2), and the requests of prctl(2) that mean the same.

mod log;
pub mod verdict;

use alloc::vec::Vec;

use base::VirtAddr;
use linux_raw_sys::general::__NR_seccomp;
use linux_raw_sys::ptrace::{
    SECCOMP_FILTER_FLAG_LOG, SECCOMP_FILTER_FLAG_SPEC_ALLOW, SECCOMP_FILTER_FLAG_TSYNC,
    SECCOMP_FILTER_FLAG_TSYNC_ESRCH, SECCOMP_GET_ACTION_AVAIL, SECCOMP_GET_NOTIF_SIZES,
    SECCOMP_MODE_FILTER, SECCOMP_MODE_STRICT, SECCOMP_SET_MODE_FILTER, SECCOMP_SET_MODE_STRICT,
};
use mach::mem::fallible::TryGrow;
use mm::user;
use task::seccomp::{self, Action, Installed, Scope};

use linux_abi::call::{Arg, Call, Entry, Outcome};
use linux_abi::errno::Errno;

/// The calls of this family.
pub const CALLS: &[Entry] = &[Entry {
    number: __NR_seccomp,
    name: "seccomp",
    args: &[Arg::Int, Arg::Flags, Arg::Address],
    handler: call,
}];

/// Instructions that a program may have (BPF_MAXINSNS).
const INSTRUCTIONS_MAX: usize = 4096;
/// Flags of a filter. Speculation is as safe with a filter as without, so nobody need allow it.
const FLAGS: u32 = SECCOMP_FILTER_FLAG_TSYNC
    | SECCOMP_FILTER_FLAG_LOG
    | SECCOMP_FILTER_FLAG_SPEC_ALLOW
    | SECCOMP_FILTER_FLAG_TSYNC_ESRCH;
/// `struct seccomp_notif_sizes`: bytes of a notification, of its answer, and of the data.
const NOTIFICATION_BYTES: [u16; 3] = [80, 24, 64];

fn call(call: Call<'_>) -> Outcome {
    let (flags, at) = (call.uint(1), call.addr(2));
    match call.uint(0) {
        SECCOMP_SET_MODE_STRICT if flags == 0 && at.0 == 0 => set_strict(&call),
        SECCOMP_SET_MODE_FILTER if flags & !FLAGS == 0 => set_filter(&call, flags, at),
        SECCOMP_GET_ACTION_AVAIL if flags == 0 => {
            let action = Action::from_number(user::read(at)?);
            match action.is_some_and(|action| action != Action::Notify) {
                true => Ok(0),
                false => Err(Errno::EOPNOTSUPP),
            }
        }
        SECCOMP_GET_NOTIF_SIZES if flags == 0 => {
            user::write(at, NOTIFICATION_BYTES)?;
            Ok(0)
        }
        _ => Err(Errno::EINVAL),
    }
}

/// PR_SET_SECCOMP.
pub fn set_by_prctl(call: &Call<'_>) -> Outcome {
    match call.uint(1) {
        SECCOMP_MODE_STRICT => set_strict(call),
        SECCOMP_MODE_FILTER => set_filter(call, 0, call.addr(2)),
        _ => Err(Errno::EINVAL),
    }
}

fn set_strict(call: &Call<'_>) -> Outcome {
    seccomp::become_strict(call.thread)?;
    Ok(0)
}

/// A `struct sock_fprog`: the number of instructions, and where they are.
fn set_filter(call: &Call<'_>, flags: u32, at: VirtAddr) -> Outcome {
    let [count, at] = user::read::<[u64; 2]>(at)?;
    let count = usize::from(count as u16);
    if count == 0 || count > INSTRUCTIONS_MAX {
        return Err(Errno::EINVAL);
    }
    seccomp::check_right(call.thread)?;
    if at == 0 {
        return Err(Errno::EINVAL);
    }
    let mut instructions: Vec<[u8; 8]> = Vec::new();
    let room = instructions.make_room(count);
    room.map_err(|_| Errno::ENOMEM)?;
    instructions.resize(count, [0; 8]);
    user::copy_in(VirtAddr(at), instructions.as_flattened_mut())?;
    let program = seccomp::check(&instructions)?;
    let scope = match flags & SECCOMP_FILTER_FLAG_TSYNC {
        0 => Scope::Thread,
        _ => Scope::Process,
    };
    let is_logged = flags & SECCOMP_FILTER_FLAG_LOG != 0;
    match seccomp::install(call.thread, program, is_logged, scope)? {
        Installed::Done => Ok(0),
        Installed::Diverged(_) if flags & SECCOMP_FILTER_FLAG_TSYNC_ESRCH != 0 => Err(Errno::ESRCH),
        Installed::Diverged(tid) => Ok(tid as usize),
    }
}
