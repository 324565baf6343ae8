//! sendmsg, recvmsg, sendmmsg, recvmmsg: buffers, a name and control messages, described
//! by a `struct msghdr`.

use alloc::vec::Vec;

use base::{Instant, VirtAddr};
use linux_raw_sys::general::{__NR_recvmmsg, __NR_recvmsg, __NR_sendmmsg, __NR_sendmsg};
use mm::io::{Sink, Source, UserRange};
use mm::user;
use sync::{Error, Result};
use vfs::file::OpenFile;
use vfs::socket::{Message, MessageFlags, Received, Socket};

use crate::transfer::{flags, received_len};
use crate::{address, control, socket_of};
use linux_abi::call::{Arg, Call, Entry, Outcome};
use linux_abi::deadline;
use linux_abi::errno::Errno;
use linux_abi::iovec::{self, TRANSFER_BYTES_MAX};

const ARGS: &[Arg] = &[Arg::Fd, Arg::Address, Arg::Flags];
const MANY_ARGS: &[Arg] = &[Arg::Fd, Arg::Address, Arg::Size, Arg::Flags, Arg::Address];

/// The calls of this family.
pub const CALLS: &[Entry] = &[
    Entry {
        number: __NR_sendmsg,
        name: "sendmsg",
        args: ARGS,
        handler: sendmsg,
    },
    Entry {
        number: __NR_recvmsg,
        name: "recvmsg",
        args: ARGS,
        handler: recvmsg,
    },
    Entry {
        number: __NR_sendmmsg,
        name: "sendmmsg",
        args: MANY_ARGS,
        handler: sendmmsg,
    },
    Entry {
        number: __NR_recvmmsg,
        name: "recvmmsg",
        args: MANY_ARGS,
        handler: recvmmsg,
    },
];

/// Buffers that one message may have (IOV_MAX).
const BUFFERS_MAX: u64 = 1024;
/// Messages that one call may move.
const MESSAGES_MAX: u32 = 1024;
/// Bytes of a `struct mmsghdr`, and where its length lies.
const MMSGHDR_BYTES: u64 = 64;
const MMSG_LEN_OFFSET: u64 = 56;
/// Offsets in a `struct msghdr` of what a receiving call stores.
const NAME_LEN_OFFSET: u64 = 8;
const CONTROL_LEN_OFFSET: u64 = 40;
const FLAGS_OFFSET: u64 = 48;

/// A `struct msghdr`, as the program gave it.
struct Header {
    at: VirtAddr,
    name: Option<VirtAddr>,
    name_len: u32,
    buffers: Buffers,
    control: VirtAddr,
    control_len: u64,
}

/// Where the bytes are; a single buffer needs no list.
enum Buffers {
    One(UserRange),
    Many(Vec<UserRange>),
}

impl Header {
    fn read(at: VirtAddr) -> Result<Self> {
        let [name, name_len, buffers, count, control, control_len, _] = user::read::<[u64; 7]>(at)?;
        // The length of the name is a C `int`, padding above it.
        if (name_len as u32 as i32) < 0 {
            return Err(Error::Invalid);
        }
        Ok(Self {
            at,
            name: Some(VirtAddr(name)).filter(|name| name.0 != 0),
            name_len: name_len as u32,
            buffers: Buffers::read(VirtAddr(buffers), count)?,
            control: VirtAddr(control),
            control_len,
        })
    }
}

impl Buffers {
    fn read(at: VirtAddr, count: u64) -> Result<Self> {
        if count > BUFFERS_MAX {
            return Err(Error::MessageTooLong);
        }
        if count == 1 {
            return Ok(Self::One(read_buffer(at)?));
        }
        Ok(Self::Many(iovec::read_ranges(at, count as usize)?))
    }

    fn source(&self) -> Source<'static> {
        match self {
            Self::One(range) => Source::user(range.start, range.len),
            Self::Many(ranges) => Source::user_vec(ranges.clone()),
        }
    }

    fn sink(&self) -> Sink<'static> {
        match self {
            Self::One(range) => Sink::user(range.start, range.len),
            Self::Many(ranges) => Sink::user_vec(ranges.clone()),
        }
    }
}

fn read_buffer(at: VirtAddr) -> Result<UserRange> {
    let [start, len] = user::read::<[u64; 2]>(at)?;
    if len > i64::MAX as u64 {
        return Err(Error::Invalid);
    }
    let range = UserRange::new(VirtAddr(start), len as usize)?;
    Ok(UserRange {
        len: range.len.min(TRANSFER_BYTES_MAX),
        ..range
    })
}

fn sendmsg(call: Call<'_>) -> Outcome {
    let open = call.file(0)?;
    let flags = flags(call.uint(2), &open);
    Ok(send_one(&call, socket_of(&open)?, call.addr(1), flags)?)
}

fn send_one(
    call: &Call<'_>,
    socket: &dyn Socket,
    at: VirtAddr,
    flags: MessageFlags,
) -> Result<usize> {
    let header = Header::read(at)?;
    let name = match header.name {
        Some(name) if header.name_len != 0 => Some(address::read(name, header.name_len)?),
        _ => None,
    };
    let control = control::read(call, header.control, header.control_len)?;
    let from = &mut header.buffers.source();
    socket.send(
        Message {
            from,
            to: name.as_ref(),
            control,
        },
        flags,
    )
}

/// sendmsg(2) through `open`, for who has no descriptor of it.
pub fn send_through(call: &Call<'_>, open: &OpenFile, at: VirtAddr, bits: u32) -> Result<usize> {
    send_one(call, socket_of(open)?, at, flags(bits, open))
}

/// recvmsg(2) through `open`.
pub fn receive_through(call: &Call<'_>, open: &OpenFile, at: VirtAddr, bits: u32) -> Result<usize> {
    receive_one(call, socket_of(open)?, at, flags(bits, open))
}

/// Where the parts of a message go.
pub struct Parts {
    /// Its name, as far as there is room.
    pub name: UserRange,
    /// Its control messages.
    pub control: UserRange,
    /// The message itself.
    pub payload: UserRange,
}

/// What is told of one.
pub struct Told {
    /// Bytes of its name, whether they all had room or not.
    pub name_len: u32,
    /// Bytes of its control messages.
    pub control_len: u64,
    /// Bytes of the message itself; with MSG_TRUNC all that it had.
    pub payload_len: usize,
    /// MSG_*.
    pub flags: u32,
}

/// recvmsg(2) through `open`, by one who says where the parts go without a `struct msghdr`.
pub fn receive_parts(call: &Call<'_>, open: &OpenFile, parts: &Parts, bits: u32) -> Result<Told> {
    let flags = flags(bits, open);
    let payload = &mut Sink::user(parts.payload.start, parts.payload.len);
    let received = socket_of(open)?.receive(payload, flags)?;
    let payload_len = received_len(&received, flags);
    let name_len = match &received.from {
        Some(name) => address::write(parts.name.start, parts.name.len as u32, name)?,
        None => 0,
    };
    let control = (parts.control.start, parts.control.len as u64);
    let (control_len, flags) = store_control(call, control, received, flags)?;
    Ok(Told {
        name_len,
        control_len,
        payload_len,
        flags,
    })
}

fn recvmsg(call: Call<'_>) -> Outcome {
    let open = call.file(0)?;
    let flags = flags(call.uint(2), &open);
    Ok(receive_one(&call, socket_of(&open)?, call.addr(1), flags)?)
}

fn receive_one(
    call: &Call<'_>,
    socket: &dyn Socket,
    at: VirtAddr,
    flags: MessageFlags,
) -> Result<usize> {
    let header = Header::read(at)?;
    let received = socket.receive(&mut header.buffers.sink(), flags)?;
    let len = received_len(&received, flags);
    store(call, &header, received, flags)?;
    Ok(len)
}

/// Stores the name, the control messages and what the header says of them.
fn store(call: &Call<'_>, header: &Header, received: Received, flags: MessageFlags) -> Result<()> {
    if let Some(name_at) = header.name {
        let len = match &received.from {
            Some(name) => address::write(name_at, header.name_len, name)?,
            None => 0,
        };
        user::write(header.at + NAME_LEN_OFFSET, len)?;
    }
    let control = (header.control, header.control_len);
    let (used, told) = store_control(call, control, received, flags)?;
    user::write(header.at + CONTROL_LEN_OFFSET, used)?;
    user::write(header.at + FLAGS_OFFSET, told)
}

/// Stores the control messages; their bytes, and the flags of the whole message.
fn store_control(
    call: &Call<'_>,
    (at, room): (VirtAddr, u64),
    received: Received,
    flags: MessageFlags,
) -> Result<(u64, u32)> {
    let cloexec = flags & MessageFlags::CMSG_CLOEXEC;
    let control = received.control;
    let (used, cut) = control::write(call, control, at, room, !cloexec.is_empty())?;
    Ok((used, (received.flags | cut).bits() | cloexec.bits()))
}

fn sendmmsg(call: Call<'_>) -> Outcome {
    let open = call.file(0)?;
    let socket = socket_of(&open)?;
    let flags = flags(call.uint(3), &open);
    let count = call.uint(2).min(MESSAGES_MAX);
    each(
        &call,
        count,
        |at, _| send_one(&call, socket, at, flags),
        || false,
    )
}

fn recvmmsg(call: Call<'_>) -> Outcome {
    let open = call.file(0)?;
    let socket = socket_of(&open)?;
    let first = flags(call.uint(3), &open);
    let deadline = deadline::from_timespec(&call, call.optional_addr(4))?;
    let count = call.uint(2).min(MESSAGES_MAX);
    let receive = |at, index| receive_one(&call, socket, at, flags_of_later(first, index));
    let outcome = each(&call, count, receive, || is_over(deadline));
    deadline::tell_remaining(call.optional_addr(4), deadline);
    outcome
}

/// With MSG_WAITFORONE only the first message may be waited for.
fn flags_of_later(first: MessageFlags, index: u32) -> MessageFlags {
    match first.contains(MessageFlags::WAITFORONE) && index != 0 {
        true => first | MessageFlags::DONTWAIT,
        false => first,
    }
}

fn is_over(deadline: Instant) -> bool {
    deadline != Instant::NEVER && mach::time::now() >= deadline
}

/// Moves messages one by one until an error or `is_over`; an error counts only if it
/// comes first.
fn each(
    call: &Call<'_>,
    count: u32,
    mut move_one: impl FnMut(VirtAddr, u32) -> Result<usize>,
    is_over: impl Fn() -> bool,
) -> Outcome {
    for index in 0..count {
        let at = call.addr(1) + u64::from(index) * MMSGHDR_BYTES;
        let moved = move_one(at, index);
        let told = moved.and_then(|len| user::write(at + MMSG_LEN_OFFSET, len as u32));
        match told {
            Ok(()) if is_over() => return Ok(index as usize + 1),
            Ok(()) => {}
            Err(error) if index == 0 => return Err(Errno::from(error)),
            Err(_) => return Ok(index as usize),
        }
    }
    Ok(count as usize)
}
