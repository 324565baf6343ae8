//! bind, listen, accept, accept4, connect, getsockname, getpeername, shutdown.

use linux_raw_sys::general::{
    __NR_accept, __NR_accept4, __NR_bind, __NR_connect, __NR_getpeername, __NR_getsockname,
    __NR_listen, __NR_shutdown,
};
use sync::Result;
use vfs::file::OpenFile;
use vfs::socket::{Blocking, Shutdown};

use crate::create::{FLAGS, install};
use crate::{address, socket_of};
use linux_abi::call::{Arg, Call, Entry, Outcome};
use linux_abi::descriptor::only;
use linux_abi::errno::Errno;

const NAME_ARGS: &[Arg] = &[Arg::Fd, Arg::Address, Arg::Size];

/// The calls of this family.
pub const CALLS: &[Entry] = &[
    Entry {
        number: __NR_bind,
        name: "bind",
        args: NAME_ARGS,
        handler: bind,
    },
    Entry {
        number: __NR_connect,
        name: "connect",
        args: NAME_ARGS,
        handler: connect,
    },
    Entry {
        number: __NR_listen,
        name: "listen",
        args: &[Arg::Fd, Arg::Int],
        handler: listen,
    },
    Entry {
        number: __NR_accept,
        name: "accept",
        args: &[Arg::Fd, Arg::Address, Arg::Address],
        handler: accept,
    },
    Entry {
        number: __NR_accept4,
        name: "accept4",
        args: &[Arg::Fd, Arg::Address, Arg::Address, Arg::Flags],
        handler: accept4,
    },
    Entry {
        number: __NR_getsockname,
        name: "getsockname",
        args: &[Arg::Fd, Arg::Address, Arg::Address],
        handler: getsockname,
    },
    Entry {
        number: __NR_getpeername,
        name: "getpeername",
        args: &[Arg::Fd, Arg::Address, Arg::Address],
        handler: getpeername,
    },
    Entry {
        number: __NR_shutdown,
        name: "shutdown",
        args: &[Arg::Fd, Arg::Int],
        handler: shutdown,
    },
];

fn blocking(open: &OpenFile) -> Blocking {
    if open.is_nonblocking() {
        Blocking::Never
    } else {
        Blocking::MayWait
    }
}

fn bind(call: Call<'_>) -> Outcome {
    let open = call.file(0)?;
    let socket = socket_of(&open)?;
    socket.bind(&address::read(call.addr(1), call.uint(2))?)?;
    Ok(0)
}

fn connect(call: Call<'_>) -> Outcome {
    let open = call.file(0)?;
    let socket = socket_of(&open)?;
    let name = address::read(call.addr(1), call.uint(2))?;
    socket.connect(&name, blocking(&open))?;
    Ok(0)
}

/// A negative backlog is the largest (listen(2) compares it without a sign).
fn listen(call: Call<'_>) -> Outcome {
    let open = call.file(0)?;
    socket_of(&open)?.listen(call.uint(1))?;
    Ok(0)
}

fn accept(call: Call<'_>) -> Outcome {
    take_connection(&call, 0)
}

fn accept4(call: Call<'_>) -> Outcome {
    take_connection(&call, call.uint(3))
}

fn take_connection(call: &Call<'_>, flags: u32) -> Outcome {
    let open = call.file(0)?;
    accept_through(call, &open, blocking(&open), flags)
}

/// accept4(2) through `open`: the name goes where arguments 1 and 2 of `call` say.
pub fn accept_through(call: &Call<'_>, open: &OpenFile, blocking: Blocking, flags: u32) -> Outcome {
    let flags = only(flags, FLAGS)?;
    let (socket, peer) = socket_of(open)?.accept(blocking)?;
    let fd = install(call, socket, flags)?;
    let told = address::write_with_len(call.optional_addr(1), call.addr(2), Some(&peer));
    if told.is_err() {
        call.close_fd(fd);
    }
    told?;
    Ok(fd)
}

fn getsockname(call: Call<'_>) -> Outcome {
    let open = call.file(0)?;
    let name = socket_of(&open)?.local_address()?;
    tell_name(&call, &name)
}

fn getpeername(call: Call<'_>) -> Outcome {
    let open = call.file(0)?;
    let name = socket_of(&open)?.peer_address()?;
    tell_name(&call, &name)
}

fn tell_name(call: &Call<'_>, name: &vfs::socket::SocketAddress) -> Outcome {
    address::write_with_len(Some(call.addr(1)), call.addr(2), Some(name))?;
    Ok(0)
}

fn shutdown(call: Call<'_>) -> Outcome {
    let open = call.file(0)?;
    shutdown_through(&open, call.uint(1))
}

/// shutdown(2) through `open`.
pub fn shutdown_through(open: &OpenFile, how: u32) -> Outcome {
    let how = match how {
        0 => Shutdown::Read,
        1 => Shutdown::Write,
        2 => Shutdown::Both,
        _ => return Err(Errno::EINVAL),
    };
    let done: Result<()> = socket_of(open)?.shutdown(how);
    done?;
    Ok(0)
}
