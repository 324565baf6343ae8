//! prctl and arch_prctl: properties of threads that fit nowhere else.

use core::sync::atomic::Ordering;

use base::VirtAddr;
use cred::{
    CAPABILITY_MAX, Capability, Credentials, SECURE_ALL, SECURE_KEEP_CAPS, SECURE_LOCKS,
    SECURE_NO_AMBIENT_RAISE,
};
use linux_raw_sys::general::{__NR_arch_prctl, __NR_prctl, ARCH_SET_FS};
use linux_raw_sys::prctl::{
    PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, PR_CAP_AMBIENT_IS_SET, PR_CAP_AMBIENT_LOWER,
    PR_CAP_AMBIENT_RAISE, PR_CAPBSET_DROP, PR_CAPBSET_READ, PR_GET_AUXV, PR_GET_CHILD_SUBREAPER,
    PR_GET_DUMPABLE, PR_GET_KEEPCAPS, PR_GET_NAME, PR_GET_NO_NEW_PRIVS, PR_GET_PDEATHSIG,
    PR_GET_SECCOMP, PR_GET_SECUREBITS, PR_GET_SPECULATION_CTRL, PR_GET_THP_DISABLE,
    PR_GET_TID_ADDRESS, PR_GET_TIMERSLACK, PR_GET_TIMING, PR_GET_TSC, PR_MCE_KILL,
    PR_MCE_KILL_CLEAR, PR_MCE_KILL_DEFAULT, PR_MCE_KILL_EARLY, PR_MCE_KILL_GET, PR_MCE_KILL_LATE,
    PR_MCE_KILL_SET, PR_SET_CHILD_SUBREAPER, PR_SET_DUMPABLE, PR_SET_KEEPCAPS, PR_SET_NAME,
    PR_SET_NO_NEW_PRIVS, PR_SET_PDEATHSIG, PR_SET_PTRACER, PR_SET_SECCOMP, PR_SET_SECUREBITS,
    PR_SET_SPECULATION_CTRL, PR_SET_THP_DISABLE, PR_SET_TIMERSLACK, PR_SET_TIMING, PR_SET_TSC,
    PR_SET_VMA, PR_SET_VMA_ANON_NAME, PR_TIMING_STATISTICAL, PR_TSC_ENABLE,
};
use mm::user;
use task::signal::Signal;
use task::{Name, family};
use zerocopy::{Immutable, IntoBytes};

use crate::seccomp;
use linux_abi::call::{Arg, Call, Entry, Outcome};
use linux_abi::errno::Errno;

/// The calls of this family.
pub const CALLS: &[Entry] = &[
    Entry {
        number: __NR_prctl,
        name: "prctl",
        args: &[Arg::Int, Arg::Flags, Arg::Flags, Arg::Flags, Arg::Flags],
        handler: prctl,
    },
    Entry {
        number: __NR_arch_prctl,
        name: "arch_prctl",
        args: &[Arg::Flags, Arg::Address],
        handler: arch_prctl,
    },
];

/// The other requests of arch_prctl(2) (asm/prctl.h).
const ARCH_SET_GS: u32 = 0x1001;
const ARCH_GET_FS: u32 = 0x1003;
const ARCH_GET_GS: u32 = 0x1004;

/// Timers fire exactly, whatever slack a program allows; this is Linux's default.
const TIMER_SLACK_NS: usize = 50_000;

fn prctl(call: Call<'_>) -> Outcome {
    let value = call.arg(1);
    match call.uint(0) {
        PR_SET_NAME => set_name(&call),
        PR_GET_NAME => give(&call, *call.thread.name.lock()),
        PR_SET_DUMPABLE | PR_GET_DUMPABLE => dumpable(&call),
        PR_SET_CHILD_SUBREAPER | PR_GET_CHILD_SUBREAPER => child_subreaper(&call),
        PR_SET_PDEATHSIG | PR_GET_PDEATHSIG => parent_death_signal(&call),
        PR_SET_KEEPCAPS => keep_capabilities(&call),
        PR_GET_KEEPCAPS => Ok(look(&call, |who| usize::from(who.keeps_capabilities()))),
        PR_SET_SECUREBITS => set_secure_bits(&call),
        PR_GET_SECUREBITS => Ok(look(&call, |who| who.secure_bits) as usize),
        PR_CAPBSET_READ => {
            let number = capability(value).ok_or(Errno::EINVAL)?;
            Ok((look(&call, |who| who.capabilities.bounding) >> number & 1) as usize)
        }
        PR_CAPBSET_DROP => drop_from_bounding_set(&call),
        PR_CAP_AMBIENT => ambient(&call),
        PR_SET_NO_NEW_PRIVS | PR_GET_NO_NEW_PRIVS => no_new_privileges(&call),
        PR_SET_THP_DISABLE | PR_GET_THP_DISABLE => large_pages(&call),
        // There is one way to count CPU time, one kind of memory failure, one counter of cycles.
        PR_SET_TIMING if value == PR_TIMING_STATISTICAL.into() => Ok(0),
        PR_GET_TIMING => Ok(PR_TIMING_STATISTICAL as usize),
        PR_MCE_KILL => keep_failure_policy(&call),
        PR_MCE_KILL_GET => unused(&call, 1).map(|()| PR_MCE_KILL_DEFAULT as usize),
        PR_SET_TSC if value == PR_TSC_ENABLE.into() => Ok(0),
        PR_GET_TSC => give(&call, PR_TSC_ENABLE),
        PR_GET_TID_ADDRESS => give(&call, call.thread.clear_tid.load(Ordering::Relaxed)),
        PR_GET_SPECULATION_CTRL => unused(&call, 2).and(Err(Errno::ENODEV)),
        PR_SET_SPECULATION_CTRL => unused(&call, 3).and(Err(Errno::ENODEV)),
        // Accepted for their side effects on Linux, which are none here.
        PR_SET_VMA if value == PR_SET_VMA_ANON_NAME.into() => Ok(0),
        PR_SET_TIMERSLACK | PR_SET_PTRACER => Ok(0),
        PR_GET_TIMERSLACK => Ok(TIMER_SLACK_NS),
        PR_GET_AUXV => auxiliary_vector(&call),
        PR_GET_SECCOMP => Ok(call.thread.seccomp.get().number()),
        PR_SET_SECCOMP => seccomp::set_by_prctl(&call),
        option => {
            linux_abi::missing::count_option("prctl", u64::from(option));
            Err(Errno::EINVAL)
        }
    }
}

/// Writes what is asked for where the second argument says.
fn give<T: IntoBytes + Immutable>(call: &Call<'_>, value: T) -> Outcome {
    user::write(call.addr(1), value)?;
    Ok(0)
}

/// Writes as much of the auxiliary vector as there is room for; says how long it is.
fn auxiliary_vector(call: &Call<'_>) -> Outcome {
    unused(call, 3)?;
    let vector = call.thread.process.image.lock().auxv.clone();
    let bytes = vector.as_bytes();
    let room = usize::try_from(call.arg(2)).unwrap_or(usize::MAX);
    let shown = bytes.get(..room).unwrap_or(bytes);
    user::copy_out(shown, call.addr(1))?;
    Ok(bytes.len())
}

fn dumpable(call: &Call<'_>) -> Outcome {
    let dumpable = &call.thread.process.dumpable;
    if call.uint(0) == PR_GET_DUMPABLE {
        return Ok(usize::from(dumpable.load(Ordering::Relaxed)));
    }
    dumpable.store(flag(call.arg(1))?, Ordering::Relaxed);
    Ok(0)
}

fn child_subreaper(call: &Call<'_>) -> Outcome {
    let is_subreaper = &call.thread.process.is_subreaper;
    if call.uint(0) == PR_GET_CHILD_SUBREAPER {
        return give(call, u32::from(is_subreaper.load(Ordering::Relaxed)));
    }
    is_subreaper.store(call.arg(1) != 0, Ordering::Relaxed);
    family::note_subreaper();
    Ok(0)
}

fn parent_death_signal(call: &Call<'_>) -> Outcome {
    let signal = &call.thread.parent_death_signal;
    if call.uint(0) == PR_GET_PDEATHSIG {
        return give(call, signal.load(Ordering::Relaxed));
    }
    if call.arg(1) != 0 && Signal::new(call.uint(1)).is_none() {
        return Err(Errno::EINVAL);
    }
    signal.store(call.uint(1), Ordering::Relaxed);
    Ok(0)
}

fn keep_capabilities(call: &Call<'_>) -> Outcome {
    let keep = flag(call.arg(1))?;
    let bits = look(call, |who| who.secure_bits);
    if bits & SECURE_KEEP_CAPS << 1 != 0 {
        return Err(Errno::EPERM);
    }
    let kept = if keep { SECURE_KEEP_CAPS } else { 0 };
    change(call, |who| {
        who.secure_bits = bits & !SECURE_KEEP_CAPS | kept
    });
    Ok(0)
}

fn no_new_privileges(call: &Call<'_>) -> Outcome {
    let gains_nothing = &call.thread.no_new_privileges;
    if call.uint(0) == PR_GET_NO_NEW_PRIVS {
        unused(call, 1)?;
        return Ok(usize::from(gains_nothing.load(Ordering::Relaxed)));
    }
    unused(call, 2)?;
    if call.arg(1) != 1 {
        return Err(Errno::EINVAL);
    }
    gains_nothing.store(true, Ordering::Relaxed);
    Ok(0)
}

fn large_pages(call: &Call<'_>) -> Outcome {
    let space = call.thread.process.space.get();
    if call.uint(0) == PR_GET_THP_DISABLE {
        unused(call, 1)?;
        return Ok(usize::from(!space.allows_large_pages()));
    }
    unused(call, 2)?;
    space.allow_large_pages(call.arg(1) == 0);
    Ok(0)
}

/// Arguments from `index` on must be zero.
fn unused(call: &Call<'_>, index: usize) -> Result<(), Errno> {
    match (index..5).all(|index| call.arg(index) == 0) {
        true => Ok(()),
        false => Err(Errno::EINVAL),
    }
}

/// Memory that fails ends the machine, whatever a program prefers.
fn keep_failure_policy(call: &Call<'_>) -> Outcome {
    unused(call, 3)?;
    match (call.uint(1), call.uint(2)) {
        (PR_MCE_KILL_CLEAR, 0) => Ok(0),
        (PR_MCE_KILL_SET, PR_MCE_KILL_EARLY | PR_MCE_KILL_LATE | PR_MCE_KILL_DEFAULT) => Ok(0),
        _ => Err(Errno::EINVAL),
    }
}

fn flag(value: u64) -> Result<bool, Errno> {
    match value {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(Errno::EINVAL),
    }
}

/// Up to 15 bytes that end with a zero.
pub fn read_name(at: VirtAddr) -> sync::Result<Name> {
    let mut name = Name::default();
    for (index, place) in name.iter_mut().take(15).enumerate() {
        *place = user::read(at + index as u64)?;
        if *place == 0 {
            break;
        }
    }
    Ok(name)
}

fn set_name(call: &Call<'_>) -> Outcome {
    *call.thread.name.lock() = read_name(call.addr(1))?;
    perf::note_name(call.thread);
    Ok(0)
}

fn look<R>(call: &Call<'_>, look: impl FnOnce(&Credentials) -> R) -> R {
    call.thread.credentials.with(|who| look(who))
}

fn change(call: &Call<'_>, change: impl FnOnce(&mut Credentials)) {
    let mut who = Credentials::clone(&call.thread.credentials.get());
    change(&mut who);
    call.thread.take_credentials(who);
}

fn capability(value: u64) -> Option<u32> {
    u32::try_from(value)
        .ok()
        .filter(|&number| number <= CAPABILITY_MAX)
}

fn drop_from_bounding_set(call: &Call<'_>) -> Outcome {
    let number = capability(call.arg(1)).ok_or(Errno::EINVAL)?;
    look(call, |who| who.require(Capability::Setpcap))?;
    change(call, |who| who.capabilities.bounding &= !(1 << number));
    Ok(0)
}

/// Locks stay, and so does what they lock; all else is for CAP_SETPCAP.
fn set_secure_bits(call: &Call<'_>) -> Outcome {
    let wanted = u32::try_from(call.arg(1)).map_err(|_| Errno::EPERM)?;
    let old = look(call, |who| who.secure_bits);
    let locks = old & SECURE_LOCKS;
    let changes_locked = locks >> 1 & (old ^ wanted) != 0;
    if changes_locked || locks & !wanted != 0 || wanted & !SECURE_ALL != 0 {
        return Err(Errno::EPERM);
    }
    look(call, |who| who.require(Capability::Setpcap))?;
    change(call, |who| who.secure_bits = wanted);
    Ok(0)
}

fn ambient(call: &Call<'_>) -> Outcome {
    let action = call.uint(1);
    // Arguments that mean nothing must be zero.
    let unused = call.arg(3) | call.arg(4);
    if unused != 0 || action == PR_CAP_AMBIENT_CLEAR_ALL && call.arg(2) != 0 {
        return Err(Errno::EINVAL);
    }
    if action == PR_CAP_AMBIENT_CLEAR_ALL {
        change(call, |who| who.capabilities.ambient = 0);
        return Ok(0);
    }
    let bit = 1 << capability(call.arg(2)).ok_or(Errno::EINVAL)?;
    let caps = look(call, |who| who.capabilities);
    match action {
        PR_CAP_AMBIENT_IS_SET => return Ok(usize::from(caps.ambient & bit != 0)),
        PR_CAP_AMBIENT_RAISE if caps.permitted & caps.inheritable & bit == 0 => {
            return Err(Errno::EPERM);
        }
        PR_CAP_AMBIENT_RAISE
            if look(call, |who| who.secure_bits) & SECURE_NO_AMBIENT_RAISE != 0 =>
        {
            return Err(Errno::EPERM);
        }
        PR_CAP_AMBIENT_RAISE => change(call, |who| who.capabilities.ambient |= bit),
        PR_CAP_AMBIENT_LOWER => change(call, |who| who.capabilities.ambient &= !bit),
        _ => return Err(Errno::EINVAL),
    }
    Ok(0)
}

fn arch_prctl(call: Call<'_>) -> Outcome {
    let context = &call.thread.sched.context;
    let value = call.arg(1);
    let set = |accepted: bool| if accepted { Ok(0) } else { Err(Errno::EPERM) };
    match call.uint(0) {
        ARCH_SET_FS => set(context.set_fs_base(value)),
        ARCH_SET_GS => set(context.set_gs_base(value)),
        ARCH_GET_FS => {
            user::write(call.addr(1), context.fs_base())?;
            Ok(0)
        }
        ARCH_GET_GS => {
            user::write(call.addr(1), context.gs_base())?;
            Ok(0)
        }
        option => {
            linux_abi::missing::count_option("arch_prctl", u64::from(option));
            Err(Errno::EINVAL)
        }
    }
}
