//! semget, semop, semtimedop, semctl.

use alloc::vec::Vec;

use base::{Instant, VirtAddr};
use ipc::sysv::semaphores::{
    self, OPERATIONS_MAX, Question, SEMAPHORES_MAX, SET_LENGTH_MAX, SETS_MAX,
};
use ipc::sysv::{Operation, VALUE_MAX};
use linux_raw_sys::general::{__NR_semctl, __NR_semget, __NR_semop, __NR_semtimedop};
use mm::user;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::{
    IPC_INFO, IPC_NOWAIT, IPC_RMID, IPC_SET, IPC_STAT, Permissions, command, get_request, look,
    number, show,
};
use linux_abi::call::{Arg, Call, Entry, Outcome};
use linux_abi::deadline;
use linux_abi::errno::Errno;

/// The calls of this family.
pub const CALLS: &[Entry] = &[
    Entry {
        number: __NR_semget,
        name: "semget",
        args: &[Arg::Int, Arg::Int, Arg::Flags],
        handler: semget,
    },
    Entry {
        number: __NR_semop,
        name: "semop",
        args: &[Arg::Int, Arg::Address, Arg::Size],
        handler: semop,
    },
    Entry {
        number: __NR_semtimedop,
        name: "semtimedop",
        args: &[Arg::Int, Arg::Address, Arg::Size, Arg::Address],
        handler: semtimedop,
    },
    Entry {
        number: __NR_semctl,
        name: "semctl",
        args: &[Arg::Int, Arg::Int, Arg::Int, Arg::Address],
        handler: semctl,
    },
];

/// The process' end takes the operation back.
const SEM_UNDO: u32 = 0x1000;
/// Commands (<sys/sem.h>).
const GETPID: u32 = 11;
const GETVAL: u32 = 12;
const GETALL: u32 = 13;
const GETNCNT: u32 = 14;
const GETZCNT: u32 = 15;
const SETVAL: u32 = 16;
const SETALL: u32 = 17;
const SEM_STAT: u32 = 18;
const SEM_INFO: u32 = 19;
const SEM_STAT_ANY: u32 = 20;

/// `struct sembuf`.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Wanted {
    index: u16,
    change: i16,
    flags: u16,
}

/// `struct semid64_ds` of x86.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Status {
    permissions: Permissions,
    operated: i64,
    _unused1: u64,
    changed: i64,
    _unused2: u64,
    length: u64,
    _unused3: [u64; 2],
}

const _: () = assert!(size_of::<Status>() == 104, "as <asm/sembuf.h> has it");

/// `struct seminfo`.
#[derive(Clone, Copy, IntoBytes, Immutable)]
#[repr(C)]
struct Limits {
    map: u32,
    sets: u32,
    semaphores: u32,
    undoers: u32,
    set_length: u32,
    operations: u32,
    undo_entries: u32,
    /// Or how many sets there are.
    undo_bytes: u32,
    value: u32,
    /// Or how many semaphores there are.
    adjustment: u32,
}

fn semget(call: Call<'_>) -> Outcome {
    let length = usize::try_from(call.int(1)).map_err(|_| Errno::EINVAL)?;
    Ok(semaphores::get(get_request(call.int(0), call.uint(2)), length)? as usize)
}

fn semop(call: Call<'_>) -> Outcome {
    operate(&call, Instant::NEVER)
}

fn semtimedop(call: Call<'_>) -> Outcome {
    let deadline = deadline::from_timespec(&call, call.optional_addr(3))?;
    operate(&call, deadline)
}

fn operate(call: &Call<'_>, deadline: Instant) -> Outcome {
    let count = call.size(2);
    if count == 0 {
        return Err(Errno::EINVAL);
    }
    if count > OPERATIONS_MAX {
        return Err(Errno::E2BIG);
    }
    let mut operations = Vec::new();
    operations
        .try_reserve_exact(count)
        .map_err(|_| Errno::ENOMEM)?;
    for position in 0..count {
        let wanted: Wanted = user::read(call.addr(1) + (position * size_of::<Wanted>()) as u64)?;
        let flags = u32::from(wanted.flags);
        operations.push(Operation {
            index: wanted.index,
            change: wanted.change,
            undo: flags & SEM_UNDO != 0,
            no_wait: flags & IPC_NOWAIT != 0,
        });
    }
    semaphores::operate(number(call, 0)?, &operations, deadline)?;
    Ok(0)
}

fn semctl(call: Call<'_>) -> Outcome {
    let (command, to) = (command(&call, 2), call.addr(3));
    if let IPC_INFO | SEM_INFO = command {
        return tell_totals(command, to);
    }
    let number = number(&call, 0)?;
    let index = || usize::try_from(call.int(1)).map_err(|_| Errno::EINVAL);
    let ask = |question| Ok(semaphores::ask(number, index()?, question)? as usize);
    match command {
        GETVAL => ask(Question::Value),
        GETPID => ask(Question::Changer),
        GETNCNT => ask(Question::Growing),
        GETZCNT => ask(Question::Zero),
        GETALL => {
            user::copy_out(semaphores::values(number)?.as_bytes(), to)?;
            Ok(0)
        }
        SETVAL => {
            let value = u16::try_from(call.int(3))
                .ok()
                .filter(|&value| value <= VALUE_MAX);
            let value = value.ok_or(Errno::ERANGE)?;
            semaphores::set_values(number, index()?, &[value])?;
            Ok(0)
        }
        SETALL => set_all(number, to),
        IPC_STAT | SEM_STAT | SEM_STAT_ANY => {
            let look = look(number, command, SEM_STAT, SEM_STAT_ANY);
            let facts = semaphores::look(look)?;
            show(to, status(&facts), &facts.common, look)
        }
        IPC_SET => {
            let wanted: Status = user::read(to)?;
            semaphores::set(number, wanted.permissions.settings())?;
            Ok(0)
        }
        IPC_RMID => {
            semaphores::remove(number)?;
            Ok(0)
        }
        _ => Err(Errno::EINVAL),
    }
}

fn set_all(number: u32, from: VirtAddr) -> Outcome {
    let length = semaphores::length(number)?;
    let mut values: Vec<u16> = Vec::new();
    values
        .try_reserve_exact(length)
        .map_err(|_| Errno::ENOMEM)?;
    values.resize(length, 0);
    user::copy_in(from, values.as_mut_bytes())?;
    semaphores::set_values(number, 0, &values)?;
    Ok(0)
}

fn status(facts: &semaphores::Facts) -> Status {
    Status {
        permissions: Permissions::of(&facts.common, 0),
        operated: facts.operated,
        _unused1: 0,
        changed: facts.changed,
        _unused2: 0,
        length: facts.length as u64,
        _unused3: [0; 2],
    }
}

fn tell_totals(command: u32, to: VirtAddr) -> Outcome {
    let (sets, highest, all) = semaphores::totals();
    let value = u32::from(VALUE_MAX);
    let mut limits = Limits {
        map: SEMAPHORES_MAX as u32,
        sets: SETS_MAX as u32,
        semaphores: SEMAPHORES_MAX as u32,
        undoers: SEMAPHORES_MAX as u32,
        set_length: SET_LENGTH_MAX as u32,
        operations: OPERATIONS_MAX as u32,
        undo_entries: OPERATIONS_MAX as u32,
        undo_bytes: 20,
        value,
        adjustment: value,
    };
    if command == SEM_INFO {
        (limits.undo_bytes, limits.adjustment) = (sets as u32, all as u32);
    }
    user::write(to, limits)?;
    Ok(highest)
}
