//! sendto, recvfrom: one buffer, and perhaps a name.

use linux_raw_sys::general::{__NR_recvfrom, __NR_sendto};
use vfs::file::OpenFile;
use vfs::socket::{Control, Message, MessageFlags, Received};

use crate::{address, socket_of};
use linux_abi::call::{Arg, Call, Entry, Outcome};
use linux_abi::iovec;

const ARGS: &[Arg] = &[
    Arg::Fd,
    Arg::Buffer,
    Arg::Size,
    Arg::Flags,
    Arg::Address,
    Arg::Size,
];

pub const CALLS: &[Entry] = &[
    Entry {
        number: __NR_sendto,
        name: "sendto",
        args: ARGS,
        handler: sendto,
    },
    Entry {
        number: __NR_recvfrom,
        name: "recvfrom",
        args: ARGS,
        handler: recvfrom,
    },
];

/// The flags of a call on `open`, which may itself be non-blocking. Linux ignores bits
/// that it does not know, and so do we.
pub fn flags(bits: u32, open: &OpenFile) -> MessageFlags {
    MessageFlags::from_bits_truncate(bits) | MessageFlags::of(open)
}

/// What a receiving call returns: with MSG_TRUNC the whole length of the message.
pub fn received_len(received: &Received, flags: MessageFlags) -> usize {
    if flags.contains(MessageFlags::TRUNC) {
        received.length
    } else {
        received.bytes
    }
}

fn sendto(call: Call<'_>) -> Outcome {
    let open = call.file(0)?;
    let socket = socket_of(&open)?;
    let name = match call.optional_addr(4) {
        Some(at) => Some(address::read(at, call.uint(5))?),
        None => None,
    };
    let from = &mut iovec::source_at(&call, 1)?;
    let message = Message {
        from,
        to: name.as_ref(),
        control: Control::default(),
    };
    Ok(socket.send(message, flags(call.uint(3), &open))?)
}

fn recvfrom(call: Call<'_>) -> Outcome {
    let open = call.file(0)?;
    let socket = socket_of(&open)?;
    let flags = flags(call.uint(3), &open);
    // By reference: it is large.
    let received = &socket.receive(&mut iovec::sink_at(&call, 1)?, flags);
    let received = received.as_ref().map_err(|error| *error)?;
    address::write_with_len(call.optional_addr(4), call.addr(5), received.from.as_ref())?;
    Ok(received_len(received, flags))
}
