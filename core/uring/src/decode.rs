//! From an entry's fields to what it asks for, by Linux's rules (io_uring/*.c, `*_prep`).

use crate::cancel::Key;
use crate::operation::{Buffers, Call, Direction, Operation, Place, TimeoutFlags};
use crate::sqe::{Sqe, SqeFlags};

/// The entry asks for nothing that there is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Invalid;

type Decoded = Result<Operation, Invalid>;

/// IORING_RECVSEND_POLL_FIRST, IORING_RECV_MULTISHOT.
const POLL_FIRST: u16 = 1;
const RECV_MULTISHOT: u16 = 2;
/// IORING_ACCEPT_MULTISHOT.
const ACCEPT_MULTISHOT: u16 = 1;
/// IORING_POLL_*.
const POLL_MULTISHOT: u32 = 1;
const POLL_UPDATE_EVENTS: u32 = 2;
const POLL_UPDATE_USER_DATA: u32 = 4;
/// IORING_ASYNC_CANCEL_*.
const CANCEL_ALL: u32 = 1;
const CANCEL_FD: u32 = 2;
const CANCEL_ANY: u32 = 4;
const CANCEL_FD_FIXED: u32 = 8;
/// IORING_FSYNC_DATASYNC.
const FSYNC_DATASYNC: u32 = 1;
/// IORING_FILE_INDEX_ALLOC.
const SLOT_ANY: u32 = u32::MAX;

/// Decodes an entry.
pub fn decode(sqe: &Sqe) -> Decoded {
    let flags = sqe.known_flags().ok_or(Invalid)?;
    if sqe.personality != 0 {
        return Err(Invalid);
    }
    let is_lent = flags.contains(SqeFlags::BUFFER_SELECT);
    let takes_lent = matches!(sqe.opcode, 1 | 10 | 22 | 27);
    if is_lent && !takes_lent {
        return Err(Invalid);
    }
    match sqe.opcode {
        0 => Ok(Operation::Nop),
        1 => transfer(sqe, Direction::In, vector_or_lent(sqe, is_lent)?),
        2 => transfer(sqe, Direction::Out, vector(sqe)),
        3 => fsync(sqe),
        4 => transfer(sqe, Direction::In, fixed(sqe)),
        5 => transfer(sqe, Direction::Out, fixed(sqe)),
        6 => poll(sqe),
        7 => poll_update(sqe),
        9 => header(sqe, Direction::Out, is_lent),
        10 => header(sqe, Direction::In, is_lent),
        11 => timeout(sqe),
        12 => timeout_remove(sqe),
        13 => accept(sqe),
        14 => cancel(sqe, flags),
        15 => link_timeout(sqe),
        16 => connect(sqe),
        19 => close(sqe, flags),
        20 => files_update(sqe, flags),
        22 => transfer(sqe, Direction::In, one_or_lent(sqe, is_lent)),
        23 => transfer(sqe, Direction::Out, one(sqe)),
        26 => message(sqe, Direction::Out, one(sqe)),
        27 => message(sqe, Direction::In, one_or_lent(sqe, is_lent)),
        34 => shutdown(sqe),
        _ => call(sqe, flags),
    }
}

fn zero(fields: &[u64]) -> Result<(), Invalid> {
    let all = fields.iter().all(|field| *field == 0);
    all.then_some(()).ok_or(Invalid)
}

fn one(sqe: &Sqe) -> Buffers {
    Buffers::One {
        address: sqe.addr,
        len: sqe.len,
    }
}

fn one_or_lent(sqe: &Sqe, is_lent: bool) -> Buffers {
    match is_lent {
        false => one(sqe),
        true => Buffers::Lent {
            group: sqe.buf_index,
            len: sqe.len,
        },
    }
}

fn vector(sqe: &Sqe) -> Buffers {
    Buffers::Vector {
        address: sqe.addr,
        count: sqe.len,
    }
}

/// With a lent buffer there is no array to say how long it is.
fn vector_or_lent(sqe: &Sqe, is_lent: bool) -> Result<Buffers, Invalid> {
    (!is_lent).then(|| vector(sqe)).ok_or(Invalid)
}

fn fixed(sqe: &Sqe) -> Buffers {
    Buffers::Fixed {
        address: sqe.addr,
        len: sqe.len,
        index: sqe.buf_index,
    }
}

fn transfer(sqe: &Sqe, direction: Direction, buffers: Buffers) -> Decoded {
    let place = match sqe.off {
        u64::MAX => Place::Current,
        offset => Place::At(offset),
    };
    Ok(Operation::Transfer {
        direction,
        buffers,
        place,
        flags: sqe.op_flags,
    })
}

fn fsync(sqe: &Sqe) -> Decoded {
    zero(&[sqe.addr, sqe.buf_index.into(), sqe.file_index.into()])?;
    match sqe.op_flags & !FSYNC_DATASYNC {
        0 => Ok(Operation::Fsync {
            is_data_only: sqe.op_flags != 0,
        }),
        _ => Err(Invalid),
    }
}

fn poll(sqe: &Sqe) -> Decoded {
    zero(&[sqe.buf_index.into(), sqe.off, sqe.addr])?;
    match sqe.len & !POLL_MULTISHOT {
        0 => Ok(Operation::Poll {
            events: sqe.op_flags,
            is_multishot: sqe.len != 0,
        }),
        _ => Err(Invalid),
    }
}

fn poll_update(sqe: &Sqe) -> Decoded {
    zero(&[sqe.buf_index.into(), sqe.file_index.into()])?;
    let known = POLL_MULTISHOT | POLL_UPDATE_EVENTS | POLL_UPDATE_USER_DATA;
    let has = |flag: u32| sqe.len & flag != 0;
    if sqe.len & !known != 0 || sqe.len == POLL_MULTISHOT {
        return Err(Invalid);
    }
    if !has(POLL_UPDATE_USER_DATA) {
        zero(&[sqe.off])?;
    }
    if !has(POLL_UPDATE_EVENTS) {
        zero(&[sqe.op_flags.into()])?;
    }
    Ok(Operation::PollUpdate {
        target: sqe.addr,
        events: has(POLL_UPDATE_EVENTS).then_some(sqe.op_flags),
        user_data: has(POLL_UPDATE_USER_DATA).then_some(sqe.off),
        is_multishot: has(POLL_MULTISHOT),
    })
}

/// Lent buffers are for messages of many shots only.
fn header(sqe: &Sqe, direction: Direction, is_lent: bool) -> Decoded {
    zero(&[sqe.off, sqe.file_index.into()])?;
    let is_multishot = are_many_shots(sqe, direction)?;
    if is_multishot != is_lent {
        return Err(Invalid);
    }
    Ok(Operation::Header {
        direction,
        address: sqe.addr,
        flags: sqe.op_flags,
        group: is_lent.then_some(sqe.buf_index),
    })
}

/// Whether a message is the first of many; those that are sent never are.
fn are_many_shots(sqe: &Sqe, direction: Direction) -> Result<bool, Invalid> {
    const WAITALL: u32 = 0x100;
    let known = match direction {
        Direction::In => POLL_FIRST | RECV_MULTISHOT,
        Direction::Out => POLL_FIRST,
    };
    let is_multishot = sqe.ioprio & RECV_MULTISHOT != 0;
    let waits_for_all = is_multishot && sqe.op_flags & WAITALL != 0;
    match sqe.ioprio & !known == 0 && !waits_for_all {
        true => Ok(is_multishot),
        false => Err(Invalid),
    }
}

fn message(sqe: &Sqe, direction: Direction, buffers: Buffers) -> Decoded {
    zero(&[sqe.off, sqe.file_index.into()])?;
    let is_multishot = are_many_shots(sqe, direction)?;
    let is_lent = matches!(buffers, Buffers::Lent { .. });
    if is_multishot && (!is_lent || sqe.len != 0) {
        return Err(Invalid);
    }
    Ok(Operation::Message {
        direction,
        buffers,
        flags: sqe.op_flags,
        is_multishot,
    })
}

fn timeout_flags(sqe: &Sqe) -> Result<TimeoutFlags, Invalid> {
    let flags = TimeoutFlags::from_bits(sqe.op_flags).ok_or(Invalid)?;
    let clocks = TimeoutFlags::BOOTTIME | TimeoutFlags::REALTIME;
    (!flags.contains(clocks)).then_some(flags).ok_or(Invalid)
}

fn timeout(sqe: &Sqe) -> Decoded {
    zero(&[sqe.buf_index.into(), sqe.file_index.into()])?;
    let flags = timeout_flags(sqe)?;
    if sqe.len != 1 || flags.intersects(TimeoutFlags::UPDATE | TimeoutFlags::LINK_UPDATE) {
        return Err(Invalid);
    }
    let count = u32::try_from(sqe.off).map_err(|_| Invalid)?;
    Ok(Operation::Timeout {
        address: sqe.addr,
        count,
        flags,
    })
}

fn link_timeout(sqe: &Sqe) -> Decoded {
    zero(&[sqe.buf_index.into(), sqe.file_index.into(), sqe.off])?;
    let flags = timeout_flags(sqe)?;
    if sqe.len != 1 || flags.intersects(TimeoutFlags::UPDATE | TimeoutFlags::LINK_UPDATE) {
        return Err(Invalid);
    }
    Ok(Operation::LinkTimeout {
        address: sqe.addr,
        flags,
    })
}

fn timeout_remove(sqe: &Sqe) -> Decoded {
    zero(&[sqe.buf_index.into(), sqe.len.into(), sqe.file_index.into()])?;
    let flags = timeout_flags(sqe)?;
    let update = TimeoutFlags::UPDATE | TimeoutFlags::LINK_UPDATE;
    if flags.contains(TimeoutFlags::LINK_UPDATE)
        || flags.contains(TimeoutFlags::ETIME_SUCCESS)
        || (!flags.intersects(update) && !flags.is_empty())
    {
        return Err(Invalid);
    }
    Ok(Operation::TimeoutRemove {
        target: sqe.addr,
        address: flags.intersects(update).then_some(sqe.off),
        flags,
    })
}

fn accept(sqe: &Sqe) -> Decoded {
    zero(&[sqe.len.into(), sqe.buf_index.into()])?;
    let is_multishot = sqe.ioprio & ACCEPT_MULTISHOT != 0;
    let is_odd = is_multishot && sqe.file_index != 0 && sqe.file_index != SLOT_ANY;
    const CLOEXEC: u32 = 0o2_000_000;
    let closes = sqe.file_index != 0 && sqe.op_flags & CLOEXEC != 0;
    if sqe.ioprio & !ACCEPT_MULTISHOT != 0 || is_odd || closes {
        return Err(Invalid);
    }
    Ok(Operation::Accept {
        address: sqe.addr,
        len_address: sqe.off,
        flags: sqe.op_flags,
        is_multishot,
        slot: sqe.file_index,
    })
}

fn connect(sqe: &Sqe) -> Decoded {
    zero(&[
        sqe.len.into(),
        sqe.buf_index.into(),
        sqe.op_flags.into(),
        sqe.file_index.into(),
    ])?;
    Ok(Operation::Connect {
        address: sqe.addr,
        // A length that does not fit is one that no name has.
        len: u32::try_from(sqe.off).unwrap_or(u32::MAX),
    })
}

fn shutdown(sqe: &Sqe) -> Decoded {
    zero(&[
        sqe.off,
        sqe.addr,
        sqe.op_flags.into(),
        sqe.buf_index.into(),
        sqe.file_index.into(),
    ])?;
    Ok(Operation::Shutdown { how: sqe.len })
}

fn cancel(sqe: &Sqe, flags: SqeFlags) -> Decoded {
    zero(&[sqe.off, sqe.len.into(), sqe.file_index.into()])?;
    let known = CANCEL_ALL | CANCEL_FD | CANCEL_ANY | CANCEL_FD_FIXED;
    let has = |flag: u32| sqe.op_flags & flag != 0;
    let is_odd = has(CANCEL_FD) && has(CANCEL_ANY);
    if flags.contains(SqeFlags::BUFFER_SELECT) || sqe.op_flags & !known != 0 || is_odd {
        return Err(Invalid);
    }
    let key = Key {
        user_data: (!has(CANCEL_FD) && !has(CANCEL_ANY)).then_some(sqe.addr),
        ..Key::default()
    };
    Ok(Operation::Cancel {
        key,
        is_fixed_file: has(CANCEL_FD_FIXED) || flags.contains(SqeFlags::FIXED_FILE),
        by_file: has(CANCEL_FD),
        is_all: has(CANCEL_ALL) || has(CANCEL_ANY),
    })
}

fn close(sqe: &Sqe, flags: SqeFlags) -> Decoded {
    zero(&[
        sqe.off,
        sqe.addr,
        sqe.len.into(),
        sqe.op_flags.into(),
        sqe.buf_index.into(),
    ])?;
    let names_both = sqe.file_index != 0 && sqe.fd != 0;
    match flags.contains(SqeFlags::FIXED_FILE) || names_both {
        true => Err(Invalid),
        false => Ok(Operation::Close {
            slot: sqe.file_index,
        }),
    }
}

fn files_update(sqe: &Sqe, flags: SqeFlags) -> Decoded {
    zero(&[sqe.op_flags.into(), sqe.file_index.into()])?;
    if flags.contains(SqeFlags::FIXED_FILE) || sqe.len == 0 {
        return Err(Invalid);
    }
    Ok(Operation::FilesUpdate {
        address: sqe.addr,
        count: sqe.len,
        first: u32::try_from(sqe.off).map_err(|_| Invalid)?,
    })
}

/// Entries that are a system call in other clothes: its arguments in its order.
fn call(sqe: &Sqe, flags: SqeFlags) -> Decoded {
    let fd = i64::from(sqe.fd) as u64;
    let (len, op_flags) = (u64::from(sqe.len), u64::from(sqe.op_flags));
    // The file of an index has no number that the call could use.
    if flags.contains(SqeFlags::FIXED_FILE) {
        return Err(Invalid);
    }
    let (call, args) = match sqe.opcode {
        8 => (Call::SyncFileRange, [fd, sqe.off, len, op_flags, 0, 0]),
        17 => (Call::Fallocate, [fd, len, sqe.off, sqe.addr, 0, 0]),
        18 if sqe.file_index == 0 => (Call::Openat, [fd, sqe.addr, op_flags, len, 0, 0]),
        21 => (Call::Statx, [fd, sqe.addr, op_flags, len, sqe.off, 0]),
        24 => (Call::Fadvise, [fd, sqe.off, len, op_flags, 0, 0]),
        25 => (Call::Madvise, [sqe.addr, len, op_flags, 0, 0, 0]),
        28 if sqe.file_index == 0 => (Call::Openat2, [fd, sqe.addr, sqe.off, len, 0, 0]),
        29 => (Call::EpollCtl, [fd, len, sqe.off, sqe.addr, 0, 0]),
        35 => (
            Call::Renameat2,
            [
                fd,
                sqe.addr,
                i64::from(sqe.len as i32) as u64,
                sqe.off,
                op_flags,
                0,
            ],
        ),
        36 => (Call::Unlinkat, [fd, sqe.addr, op_flags, 0, 0, 0]),
        37 => (Call::Mkdirat, [fd, sqe.addr, len, 0, 0, 0]),
        38 => (Call::Symlinkat, [sqe.addr, fd, sqe.off, 0, 0, 0]),
        39 => (
            Call::Linkat,
            [
                fd,
                sqe.addr,
                i64::from(sqe.len as i32) as u64,
                sqe.off,
                op_flags,
                0,
            ],
        ),
        45 if sqe.file_index == 0 => (Call::Socket, [fd, sqe.off, len, 0, 0, 0]),
        _ => return Err(Invalid),
    };
    Ok(Operation::Call { call, args })
}
