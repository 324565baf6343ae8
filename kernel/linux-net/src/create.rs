//! socket, socketpair.

use alloc::sync::Arc;

use kernel_netlink::Abi;
use linux_raw_sys::general::{__NR_socket, __NR_socketpair, O_CLOEXEC, O_NONBLOCK};
use mm::user;
use net::packet;
use sync::{Error, Result};
use vfs::file::{OpenFile, StatusFlags};
use vfs::socket::{Family, OptionValue, Socket, SocketType};

use crate::address;
use crate::option_value::encode;
use linux_abi::call::{Arg, Call, Entry, Outcome};
use linux_abi::errno::Errno;

pub const CALLS: &[Entry] = &[
    Entry {
        number: __NR_socket,
        name: "socket",
        args: &[Arg::Int, Arg::Flags, Arg::Int],
        handler: socket,
    },
    Entry {
        number: __NR_socketpair,
        name: "socketpair",
        args: &[Arg::Int, Arg::Flags, Arg::Int, Arg::Address],
        handler: socketpair,
    },
];

/// SOCK_CLOEXEC and SOCK_NONBLOCK are O_CLOEXEC and O_NONBLOCK on x86-64.
pub const FLAGS: u32 = O_CLOEXEC | O_NONBLOCK;
/// The part of the type argument that is a type.
const TYPE_MASK: u32 = 0xf;

/// What netlink's messages tell in Linux's own numbers. A constant.
static ABI: Abi = Abi {
    error_number: |error| Errno::from(error).number(),
    tcp_info: |info, to| to.extend_from_slice(encode(&OptionValue::Tcp(*info)).bytes()),
};

/// The type and the flags of a type argument.
fn decode_type(argument: u32) -> Result<(SocketType, u32)> {
    let flags = argument & !TYPE_MASK;
    if flags & !FLAGS != 0 {
        return Err(Error::Invalid);
    }
    let kind = match argument & TYPE_MASK {
        1 => SocketType::Stream,
        2 => SocketType::Datagram,
        3 => SocketType::Raw,
        5 => SocketType::SeqPacket,
        _ => return Err(Error::SocketTypeUnsupported),
    };
    Ok((kind, flags))
}

/// Linux's number of a type.
pub fn type_number(kind: SocketType) -> i32 {
    match kind {
        SocketType::Stream => 1,
        SocketType::Datagram => 2,
        SocketType::Raw => 3,
        SocketType::SeqPacket => 5,
    }
}

/// Gives a socket a descriptor.
pub fn install(call: &Call<'_>, socket: Arc<dyn Socket>, flags: u32) -> Result<usize> {
    let status = StatusFlags::RDWR | StatusFlags::from_bits_truncate(flags & O_NONBLOCK);
    call.new_fd(OpenFile::new(socket, status), flags)
}

fn socket(call: Call<'_>) -> Outcome {
    let family = address::family(call.uint(0))?;
    let (kind, flags) = decode_type(call.uint(1))?;
    let protocol = call.uint(2);
    let socket = match family {
        Family::Unix => {
            check_unix_protocol(protocol)?;
            unix::create(kind)?
        }
        Family::Inet | Family::Inet6 => inet_sockets::create(family, kind, protocol)?,
        // The protocol is an EtherType as it stands in a frame.
        Family::Packet => packet::create(kind, u16::from_be(protocol as u16))?,
        Family::Netlink => kernel_netlink::create(kind, protocol, &ABI)?,
        Family::Xdp => kernel_xdp::create(kind, protocol)?,
    };
    Ok(install(&call, socket, flags)?)
}

/// The family has one protocol, which is called 0 or by the family's number.
fn check_unix_protocol(protocol: u32) -> Result<()> {
    match protocol {
        0 | linux_raw_sys::net::AF_UNIX => Ok(()),
        _ => Err(Error::ProtocolUnsupported),
    }
}

fn socketpair(call: Call<'_>) -> Outcome {
    let family = address::family(call.uint(0))?;
    let (kind, flags) = decode_type(call.uint(1))?;
    if family != Family::Unix {
        return Err(Errno::EOPNOTSUPP);
    }
    check_unix_protocol(call.uint(2))?;
    let [first, second] = unix::create_pair(kind)?;
    let first = install(&call, first, flags)?;
    let told = install(&call, second, flags).and_then(|second| tell(&call, first, second));
    if told.is_err() {
        call.close_fd(first);
    }
    Ok(told.map(|()| 0)?)
}

/// Stores the pair of numbers; on a bad address the second is closed again.
fn tell(call: &Call<'_>, first: usize, second: usize) -> Result<()> {
    let told = user::write(call.addr(3), [first as i32, second as i32]);
    if told.is_err() {
        call.close_fd(second);
    }
    told
}
