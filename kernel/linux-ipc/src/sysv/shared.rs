//! shmget, shmat, shmdt, shmctl.

use alloc::sync::Arc;

use base::{PAGE_BYTES, VirtAddr};
use ipc::sysv::shared::{self, BYTES_MAX, SEGMENTS_MAX};
use linux_raw_sys::general::{__NR_shmat, __NR_shmctl, __NR_shmdt, __NR_shmget};
use mm::user;
use mm::{Mapping, Object, Place, Rights, Traits};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::{
    IPC_INFO, IPC_RMID, IPC_SET, IPC_STAT, Permissions, command, get_request, look, number, show,
};
use linux_abi::call::{Arg, Call, Entry, Outcome};
use linux_abi::errno::Errno;

/// The calls of this family.
pub const CALLS: &[Entry] = &[
    Entry {
        number: __NR_shmget,
        name: "shmget",
        args: &[Arg::Int, Arg::Size, Arg::Flags],
        handler: shmget,
    },
    Entry {
        number: __NR_shmat,
        name: "shmat",
        args: &[Arg::Int, Arg::Address, Arg::Flags],
        handler: shmat,
    },
    Entry {
        number: __NR_shmdt,
        name: "shmdt",
        args: &[Arg::Address],
        handler: shmdt,
    },
    Entry {
        number: __NR_shmctl,
        name: "shmctl",
        args: &[Arg::Int, Arg::Int, Arg::Address],
        handler: shmctl,
    },
];

/// Flags (<sys/shm.h>).
const SHM_HUGETLB: u32 = 0o4000;
const SHM_NORESERVE: u32 = 0o10000;
const SHM_RDONLY: u32 = 0o10000;
const SHM_RND: u32 = 0o20000;
const SHM_REMAP: u32 = 0o40000;
const SHM_EXEC: u32 = 0o100_000;
/// In a mode: the segment goes with its last attachment.
const SHM_DEST: u32 = 0o1000;
/// Commands.
const SHM_LOCK: u32 = 11;
const SHM_UNLOCK: u32 = 12;
const SHM_STAT: u32 = 13;
const SHM_INFO: u32 = 14;
const SHM_STAT_ANY: u32 = 15;

/// `struct shmid64_ds`.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Status {
    permissions: Permissions,
    bytes: u64,
    attached: i64,
    detached: i64,
    changed: i64,
    creator: u32,
    last: u32,
    attachments: u64,
    _unused: [u64; 2],
}

const _: () = assert!(size_of::<Status>() == 112, "as <linux/shmbuf.h> has it");

/// `struct shminfo64`.
#[derive(Clone, Copy, IntoBytes, Immutable)]
#[repr(C)]
struct Limits {
    bytes_max: u64,
    bytes_min: u64,
    segments_max: u64,
    segments_of_process_max: u64,
    pages_max: u64,
    _unused: [u64; 4],
}

/// `struct shm_info`.
#[derive(Clone, Copy, IntoBytes, Immutable)]
#[repr(C)]
struct Totals {
    segments: u32,
    _pad: u32,
    pages: u64,
    resident: u64,
    swapped: u64,
    _unused: [u64; 2],
}

fn shmget(call: Call<'_>) -> Outcome {
    let flags = call.uint(2);
    if flags & SHM_HUGETLB != 0 {
        return Err(Errno::ENOMEM);
    }
    let is_reserved = flags & SHM_NORESERVE == 0;
    let number = shared::get(get_request(call.int(0), flags), call.arg(1), is_reserved)?;
    Ok(number as usize)
}

fn shmat(call: Call<'_>) -> Outcome {
    let (at, flags) = (call.addr(1), call.uint(2));
    let page = PAGE_BYTES as u64;
    let at = match at.0 % page {
        0 => at,
        _ if flags & SHM_RND != 0 => VirtAddr(at.0 - at.0 % page),
        _ => return Err(Errno::EINVAL),
    };
    let place = match (at.0, flags & SHM_REMAP != 0) {
        (0, true) => return Err(Errno::EINVAL),
        (0, false) => Place::Hint(at),
        (_, true) => Place::Fixed(at),
        (_, false) => Place::FixedIfFree(at),
    };
    let may_store = flags & SHM_RDONLY == 0;
    let segment = shared::attach(number(&call, 0)?, may_store)?;
    let exec = flags & SHM_EXEC != 0;
    let access = Rights {
        read: true,
        write: may_store,
        exec,
    };
    let mapping = Mapping {
        place,
        bytes: segment.bytes(),
        access,
        limit: Rights {
            exec: true,
            ..access
        },
        traits: Traits {
            shared: true,
            ..Traits::default()
        },
        object: Some((Object::new(Arc::clone(&segment) as Arc<_>, None), 0)),
        populate: false,
    };
    match call.thread.process.space.get().map(mapping) {
        Ok(at) => Ok(at.0 as usize),
        // What is there is not replaced.
        Err(sync::Error::Exists) => Err(Errno::EINVAL),
        Err(error) => Err(error.into()),
    }
}

fn shmdt(call: Call<'_>) -> Outcome {
    shared::detach(call.addr(0))?;
    Ok(0)
}

fn shmctl(call: Call<'_>) -> Outcome {
    let (command, to) = (command(&call, 1), call.addr(2));
    if let IPC_INFO | SHM_INFO = command {
        return tell_totals(command, to);
    }
    let number = number(&call, 0)?;
    match command {
        IPC_STAT | SHM_STAT | SHM_STAT_ANY => {
            let look = look(number, command, SHM_STAT, SHM_STAT_ANY);
            let facts = shared::look(look)?;
            show(to, status(&facts), &facts.common, look)
        }
        IPC_SET => {
            let wanted: Status = user::read(to)?;
            shared::set(number, wanted.permissions.settings())?;
            Ok(0)
        }
        IPC_RMID => {
            shared::remove(number)?;
            Ok(0)
        }
        // Nothing is ever paged out.
        SHM_LOCK | SHM_UNLOCK => {
            shared::check_lock(number)?;
            Ok(0)
        }
        _ => Err(Errno::EINVAL),
    }
}

fn status(facts: &shared::Facts) -> Status {
    let flags = if facts.is_removed { SHM_DEST } else { 0 };
    Status {
        permissions: Permissions::of(&facts.common, flags),
        bytes: facts.bytes,
        attached: facts.attached,
        detached: facts.detached,
        changed: facts.changed,
        creator: facts.creator,
        last: facts.last,
        attachments: facts.attachments as u64,
        _unused: [0; 2],
    }
}

fn tell_totals(command: u32, to: VirtAddr) -> Outcome {
    let (segments, highest, pages) = shared::totals();
    if command == IPC_INFO {
        user::write(
            to,
            Limits {
                bytes_max: BYTES_MAX,
                bytes_min: 1,
                segments_max: SEGMENTS_MAX as u64,
                segments_of_process_max: SEGMENTS_MAX as u64,
                pages_max: BYTES_MAX,
                _unused: [0; 4],
            },
        )?;
    } else {
        user::write(
            to,
            Totals {
                segments: segments as u32,
                _pad: 0,
                pages,
                resident: pages,
                swapped: 0,
                _unused: [0; 2],
            },
        )?;
    }
    Ok(highest)
}
