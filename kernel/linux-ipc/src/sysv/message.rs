//! msgget, msgsnd, msgrcv, msgctl.

use alloc::vec::Vec;

use base::VirtAddr;
use ipc::sysv::messages::{self, MESSAGE_BYTES_MAX, QUEUE_BYTES_MAX, QUEUES_MAX};
use ipc::sysv::{Message, Pick};
use linux_raw_sys::general::{__NR_msgctl, __NR_msgget, __NR_msgrcv, __NR_msgsnd};
use mm::user;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::{
    IPC_INFO, IPC_NOWAIT, IPC_RMID, IPC_SET, IPC_STAT, Permissions, command, get_request, look,
    number, show,
};
use linux_abi::call::{Arg, Call, Entry, Outcome};
use linux_abi::errno::Errno;

/// The calls of this family.
pub const CALLS: &[Entry] = &[
    Entry {
        number: __NR_msgget,
        name: "msgget",
        args: &[Arg::Int, Arg::Flags],
        handler: msgget,
    },
    Entry {
        number: __NR_msgsnd,
        name: "msgsnd",
        args: &[Arg::Int, Arg::Address, Arg::Size, Arg::Flags],
        handler: msgsnd,
    },
    Entry {
        number: __NR_msgrcv,
        name: "msgrcv",
        args: &[Arg::Int, Arg::Address, Arg::Size, Arg::Int, Arg::Flags],
        handler: msgrcv,
    },
    Entry {
        number: __NR_msgctl,
        name: "msgctl",
        args: &[Arg::Int, Arg::Int, Arg::Address],
        handler: msgctl,
    },
];

/// Flags and commands (<sys/msg.h>).
const MSG_NOERROR: u32 = 0o10000;
const MSG_EXCEPT: u32 = 0o20000;
const MSG_COPY: u32 = 0o40000;
const MSG_STAT: u32 = 11;
const MSG_INFO: u32 = 12;
const MSG_STAT_ANY: u32 = 13;
/// Bytes of a message's type, before its own.
const KIND_BYTES: u64 = 8;

/// `struct msqid64_ds`.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Status {
    permissions: Permissions,
    sent: i64,
    received: i64,
    changed: i64,
    bytes: u64,
    messages: u64,
    bytes_max: u64,
    sender: u32,
    receiver: u32,
    _unused: [u64; 2],
}

const _: () = assert!(size_of::<Status>() == 120, "as <linux/msgbuf.h> has it");

/// `struct msginfo`.
#[derive(Clone, Copy, IntoBytes, Immutable)]
#[repr(C)]
struct Limits {
    /// Kilobytes, or queues.
    pool: u32,
    /// Messages.
    map: u32,
    message_bytes: u32,
    queue_bytes: u32,
    queues: u32,
    segment_bytes: u32,
    /// Messages, or bytes.
    headers: u32,
    segments: u16,
    _pad: u16,
}

fn msgget(call: Call<'_>) -> Outcome {
    Ok(messages::get(get_request(call.int(0), call.uint(1)))? as usize)
}

fn msgsnd(call: Call<'_>) -> Outcome {
    let len = call.size(2);
    if len > MESSAGE_BYTES_MAX {
        return Err(Errno::EINVAL);
    }
    let kind: i64 = user::read(call.addr(1))?;
    if kind < 1 {
        return Err(Errno::EINVAL);
    }
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(len).map_err(|_| Errno::ENOMEM)?;
    bytes.resize(len, 0);
    user::copy_in(call.addr(1) + KIND_BYTES, &mut bytes)?;
    let may_wait = call.uint(3) & IPC_NOWAIT == 0;
    messages::send(number(&call, 0)?, Message { kind, bytes }, may_wait)?;
    Ok(0)
}

fn msgrcv(call: Call<'_>) -> Outcome {
    let (limit, kind, flags) = (call.size(2), call.arg(3) as i64, call.uint(4));
    if isize::try_from(limit).is_err() {
        return Err(Errno::EINVAL);
    }
    let pick = pick(kind, flags)?;
    let may_cut = flags & MSG_NOERROR != 0;
    let may_wait = flags & IPC_NOWAIT == 0;
    let message = messages::receive(number(&call, 0)?, pick, limit, may_cut, may_wait)?;
    user::write(call.addr(1), message.kind)?;
    user::copy_out(&message.bytes, call.addr(1) + KIND_BYTES)?;
    Ok(message.bytes.len())
}

fn pick(kind: i64, flags: u32) -> Result<Pick, Errno> {
    if flags & MSG_COPY != 0 {
        if flags & MSG_EXCEPT != 0 || flags & IPC_NOWAIT == 0 {
            return Err(Errno::EINVAL);
        }
        return Ok(Pick::CopyOf(usize::try_from(kind).unwrap_or(usize::MAX)));
    }
    Ok(match kind {
        0 => Pick::First,
        1.. if flags & MSG_EXCEPT != 0 => Pick::NotOfKind(kind),
        1.. => Pick::OfKind(kind),
        _ => Pick::LowestUpTo(kind.checked_neg().unwrap_or(i64::MAX)),
    })
}

fn msgctl(call: Call<'_>) -> Outcome {
    let (command, to) = (command(&call, 1), call.addr(2));
    if let IPC_INFO | MSG_INFO = command {
        return tell_totals(command, to);
    }
    let number = number(&call, 0)?;
    match command {
        IPC_STAT | MSG_STAT | MSG_STAT_ANY => {
            let look = look(number, command, MSG_STAT, MSG_STAT_ANY);
            let facts = messages::look(look)?;
            show(to, status(&facts), &facts.common, look)
        }
        IPC_SET => {
            let wanted: Status = user::read(to)?;
            let bytes_max = usize::try_from(wanted.bytes_max).map_err(|_| Errno::EINVAL)?;
            messages::set(number, wanted.permissions.settings(), bytes_max)?;
            Ok(0)
        }
        IPC_RMID => {
            messages::remove(number)?;
            Ok(0)
        }
        _ => Err(Errno::EINVAL),
    }
}

fn status(facts: &messages::Facts) -> Status {
    let dates = facts.dates;
    Status {
        permissions: Permissions::of(&facts.common, 0),
        sent: dates.sent,
        received: dates.received,
        changed: dates.changed,
        bytes: facts.bytes as u64,
        messages: facts.messages as u64,
        bytes_max: facts.bytes_max as u64,
        sender: dates.sender,
        receiver: dates.receiver,
        _unused: [0; 2],
    }
}

fn tell_totals(command: u32, to: VirtAddr) -> Outcome {
    let (queues, highest, messages, bytes) = messages::totals();
    let mut limits = Limits {
        pool: (QUEUES_MAX * QUEUE_BYTES_MAX / 1024) as u32,
        map: QUEUE_BYTES_MAX as u32,
        message_bytes: MESSAGE_BYTES_MAX as u32,
        queue_bytes: QUEUE_BYTES_MAX as u32,
        queues: QUEUES_MAX as u32,
        segment_bytes: 16,
        headers: QUEUE_BYTES_MAX as u32,
        segments: u16::MAX,
        _pad: 0,
    };
    if command == MSG_INFO {
        limits.pool = queues as u32;
        limits.map = messages as u32;
        limits.headers = bytes as u32;
    }
    user::write(to, limits)?;
    Ok(highest)
}
