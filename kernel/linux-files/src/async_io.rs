//! Signals of readiness: the requests of fcntl(2) and ioctl(2) about who gets them.

use core::num::NonZeroU32;

use linux_raw_sys::general::*;
use mm::user;
use task::signal::Signal;
use vfs::access::{Subject, Who};
use vfs::file::async_io::{Owner, OwnerKind};
use vfs::file::{OpenFile, StatusFlags};

use linux_abi::call::{Call, Outcome};
use linux_abi::errno::Errno;

/// include/uapi/asm-generic/sockios.h: the same requests for sockets.
const FIOSETOWN: u32 = 0x8901;
const SIOCSPGRP: u32 = 0x8902;
const FIOGETOWN: u32 = 0x8903;
const SIOCGPGRP: u32 = 0x8904;

/// Whether an ioctl on a socket is one of these.
pub fn is_socket_request(request: u32) -> bool {
    matches!(request, FIOSETOWN | SIOCSPGRP | FIOGETOWN | SIOCGPGRP)
}

/// Such an ioctl.
pub fn socket_request(call: &Call<'_>, open: &OpenFile) -> Outcome {
    match call.uint(1) {
        FIOSETOWN | SIOCSPGRP => set_owner(open, user::read(call.addr(2))?),
        _ => {
            user::write(call.addr(2), owner_number(open))?;
            Ok(0)
        }
    }
}

/// The requests of fcntl(2); `None` if it is another.
pub fn fcntl(call: &Call<'_>, open: &OpenFile) -> Option<Outcome> {
    Some(match call.uint(1) {
        F_SETOWN => set_owner(open, call.int(2)),
        F_GETOWN => Ok(owner_number(open) as usize),
        F_SETOWN_EX => set_owner_ex(call, open),
        F_GETOWN_EX => get_owner_ex(call, open),
        F_SETSIG => set_signal(open, call.uint(2)),
        F_GETSIG => Ok(signal_number(open) as usize),
        _ => return None,
    })
}

/// F_SETFL: `flags` are those that may change. Only the owner reads without a trace, as for open(2).
pub fn set_flags(call: &Call<'_>, open: &OpenFile, flags: StatusFlags) -> Outcome {
    let new = flags.difference(open.flags());
    if new.contains(StatusFlags::NOATIME)
        && let Some(inode) = open.inode()
    {
        Subject::current(Who::Effective).check_owner(&inode.metadata()?)?;
    }
    open.set_async(flags.contains(StatusFlags::ASYNC), call.uint(0))?;
    open.set_flags(flags);
    Ok(0)
}

/// FIOASYNC: the number at the address says whether the flag is to be on.
pub fn set_async(call: &Call<'_>, open: &OpenFile) -> Outcome {
    let on = user::read::<i32>(call.addr(2))? != 0;
    let changes = on != open.flags().contains(StatusFlags::ASYNC);
    if changes && open.file.async_owner().is_none() {
        return Err(Errno::ENOTTY);
    }
    open.set_async(on, call.uint(0))?;
    Ok(0)
}

/// A process, or with a minus sign a group.
fn set_owner(open: &OpenFile, number: i32) -> Outcome {
    let kind = match number {
        i32::MIN => return Err(Errno::EINVAL),
        _ if number < 0 => OwnerKind::Group,
        _ => OwnerKind::Process,
    };
    let id = number.unsigned_abs();
    open.set_owner(Owner { kind, id })?;
    Ok(0)
}

/// The owner as it is now: one that is gone is nobody.
fn owner(open: &OpenFile) -> Owner {
    let owner = open.async_io().map_or(Owner::NOBODY, |known| known.owner());
    match owner.exists() {
        true => owner,
        false => Owner { id: 0, ..owner },
    }
}

fn owner_number(open: &OpenFile) -> i32 {
    let owner = owner(open);
    let number = i32::try_from(owner.id).unwrap_or(0);
    match owner.kind {
        OwnerKind::Group => -number,
        OwnerKind::Thread | OwnerKind::Process => number,
    }
}

/// `struct f_owner_ex`: a kind and a number.
fn set_owner_ex(call: &Call<'_>, open: &OpenFile) -> Outcome {
    let [kind, id]: [u32; 2] = user::read(call.addr(2))?;
    let kind = match kind {
        F_OWNER_TID => OwnerKind::Thread,
        F_OWNER_PID => OwnerKind::Process,
        F_OWNER_PGRP => OwnerKind::Group,
        _ => return Err(Errno::EINVAL),
    };
    open.set_owner(Owner { kind, id })?;
    Ok(0)
}

fn get_owner_ex(call: &Call<'_>, open: &OpenFile) -> Outcome {
    let owner = owner(open);
    let kind = match owner.kind {
        OwnerKind::Thread => F_OWNER_TID,
        OwnerKind::Process => F_OWNER_PID,
        OwnerKind::Group => F_OWNER_PGRP,
    };
    user::write(call.addr(2), [kind, owner.id])?;
    Ok(0)
}

/// 0 is a plain SIGIO.
fn set_signal(open: &OpenFile, number: u32) -> Outcome {
    if number != 0 {
        Signal::new(number).ok_or(Errno::EINVAL)?;
    }
    let signal = NonZeroU32::new(number);
    open.make_async_io()?.set_signal(signal);
    Ok(0)
}

fn signal_number(open: &OpenFile) -> u32 {
    let signal = open.async_io().and_then(|known| known.signal());
    signal.map_or(0, NonZeroU32::get)
}
