//! socket, bind, listen, accept, connect, shutdown, names and options.

use std::ffi::{c_int, c_void};
use std::net::Ipv4Addr;
use std::slice;

use libc::{sockaddr, socklen_t};
use posix::{Direction, Endpoint, Errno, Open, Result, Shutdown, Transport};

use crate::answer;
use crate::blocking::{Way, patiently};
use crate::memory::{self, Name};
use crate::next;
use crate::numbers::{self, Whose};
use crate::ring_hooks;
use crate::shards;
use crate::state::Held;

/// The part of a socket's type that is a type.
const TYPE_MASK: c_int = 0xf;

/// What is to be ours, if the program has a link.
fn transport_of(domain: c_int, kind: c_int, protocol: c_int) -> Option<Transport> {
    match (domain, kind & TYPE_MASK, protocol) {
        (libc::AF_INET, libc::SOCK_STREAM, 0 | libc::IPPROTO_TCP) => Some(Transport::Tcp),
        (libc::AF_INET, libc::SOCK_DGRAM, 0 | libc::IPPROTO_UDP) => Some(Transport::Udp),
        _ => None,
    }
}

/// `socket(2)`.
#[unsafe(no_mangle)]
pub extern "C" fn socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int {
    let held =
        transport_of(domain, kind, protocol).and_then(|transport| Some((transport, Held::open()?)));
    // SAFETY: no memory is passed.
    let number = unsafe { next::socket.get()(domain, kind, protocol) };
    let Some((transport, mut held)) = held.filter(|_| number >= 0) else {
        return number;
    };
    let is_nonblocking = kind & libc::SOCK_NONBLOCK != 0;
    let host = held.host();
    match host.add_socket(number.cast_unsigned(), transport, is_nonblocking) {
        Ok(()) => numbers::set(number, Whose::Socket),
        // It stays the kernel's.
        Err(Errno::TOO_MANY | Errno::NETWORK_DOWN) => {}
        Err(error) => {
            drop(held);
            // SAFETY: nobody has the number but us.
            unsafe { next::close.get()(number) };
            return answer::number(Err(error));
        }
    }
    number
}

/// Whether the call is for us; what is a parent's answers with an error.
fn is_ours(number: c_int) -> bool {
    matches!(numbers::whose(number), Whose::Socket | Whose::Parent)
}

/// Makes a socket the kernel's that has no name yet, for `address` is not on our link; false if it is ours.
fn leave_to_kernel(number: c_int, is_elsewhere: impl FnOnce(&mut Held) -> bool) -> Result<bool> {
    let mut held = Held::of(number)?;
    let open = held.host().socket(number.cast_unsigned())?;
    if open.is_settled() || !is_elsewhere(&mut held) {
        return Ok(false);
    }
    held.host().give_up(number.cast_unsigned())?;
    numbers::set(number, Whose::Kernel);
    if ring_hooks::note_moved(number) {
        held.parts().1.ring();
    }
    Ok(true)
}

/// Whether a socket that was not named yet is left to the kernel, because this peer is not reached by the link.
pub fn is_left_for_peer(number: c_int, peer: (Ipv4Addr, u16)) -> Result<bool> {
    leave_to_kernel(number, |held| {
        let host = held.host();
        let open = host.socket(number.cast_unsigned());
        open.is_ok_and(|open| !host.reaches(&open, peer.0, peer.1))
    })
}

/// `bind(2)`.
///
/// # Safety
/// **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bind(number: c_int, name: *const sockaddr, len: socklen_t) -> c_int {
    let ours = is_ours(number).then(|| {
        // SAFETY: **Caller**.
        let (host, port) = match unsafe { memory::read_name(name, len) }? {
            Name::Inet(host, port) => (host, port),
            Name::Unspecified => return Err(Errno::BAD_FAMILY),
        };
        if leave_to_kernel(number, |held| !held.host().has(host))? {
            return Ok(false);
        }
        let mut held = Held::of(number)?;
        let open = held.host().socket(number.cast_unsigned())?;
        held.host().bind(&open, host, port)?;
        if open.transport() == Transport::Udp {
            take_port(&mut held, &open);
        }
        Ok(true)
    });
    match ours {
        // SAFETY: **Caller**.
        None | Some(Ok(false) | Err(Errno::MOVED)) => unsafe {
            next::bind.get()(number, name, len)
        },
        Some(outcome) => answer::done(outcome.map(drop)),
    }
}

/// What comes to the socket's port is ours, also if one that was handed over to the kernel had it before.
fn take_port(held: &mut Held, open: &Open) {
    let transport = open.transport();
    if let Ok(local) = held.host().local(open) {
        // A card's ports are all ours, and a link that is gone is found elsewhere.
        let link = held.host().link();
        link.move_port(transport, local.port, false).ok();
    }
}

/// `listen(2)`.
#[unsafe(no_mangle)]
pub extern "C" fn listen(number: c_int, backlog: c_int) -> c_int {
    if !is_ours(number) {
        // SAFETY: no memory is passed.
        return unsafe { next::listen.get()(number, backlog) };
    }
    let listened = Held::of(number).and_then(|mut held| {
        let open = held.host().socket(number.cast_unsigned())?;
        held.host().listen(&open, backlog.cast_unsigned())?;
        take_port(&mut held, &open);
        Ok(())
    });
    // SAFETY: no memory is passed.
    answer::done_or(listened, || unsafe { next::listen.get()(number, backlog) })
}

/// `accept(2)`.
///
/// # Safety
/// **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn accept(number: c_int, at: *mut sockaddr, len_at: *mut socklen_t) -> c_int {
    // SAFETY: **Caller**.
    unsafe { accept4(number, at, len_at, 0) }
}

/// `accept4(2)`.
///
/// # Safety
/// **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn accept4(
    number: c_int,
    at: *mut sockaddr,
    len_at: *mut socklen_t,
    flags: c_int,
) -> c_int {
    if !is_ours(number) {
        // SAFETY: **Caller**.
        return unsafe { next::accept4.get()(number, at, len_at, flags) };
    }
    // SAFETY: **Caller**.
    let accepted =
        unsafe { accept_by(number, (at, len_at), flags, Way::of(Direction::Receive, 0)) };
    // SAFETY: **Caller**.
    let again = || unsafe { next::accept4.get()(number, at, len_at, flags) };
    answer::number_or(accepted, again)
}

/// Accepts on a socket of ours, and tells the peer's name.
///
/// # Safety
/// **Caller**.
pub unsafe fn accept_by(
    number: c_int,
    (at, len_at): (*mut sockaddr, *mut socklen_t),
    flags: c_int,
    way: Way,
) -> Result<c_int> {
    let (new, peer) = take_connection(number, flags, way)?;
    // SAFETY: **Caller**.
    unsafe { memory::tell_name(at, len_at, peer) }.map(|()| new)
}

fn take_connection(number: c_int, flags: c_int, way: Way) -> Result<(c_int, Endpoint)> {
    if flags & !(libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK) != 0 {
        return Err(Errno::INVALID);
    }
    shards::note_acceptor();
    patiently(number, way, |host, open| {
        host.may_accept(open)?;
        // SAFETY: no memory is passed.
        let new = unsafe { next::socket.get()(libc::AF_INET, libc::SOCK_STREAM | flags, 0) };
        if new < 0 {
            return Err(Errno::TOO_MANY);
        }
        let accepted = host.accept(open, new.cast_unsigned(), flags & libc::SOCK_NONBLOCK != 0);
        match accepted {
            Ok(_) => numbers::set_at(new, Whose::Socket, numbers::place(number)),
            // SAFETY: nobody has the number but us.
            Err(_) => drop(unsafe { next::close.get()(new) }),
        }
        accepted.map(|peer| (new, peer))
    })
}

/// `connect(2)`.
///
/// # Safety
/// **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn connect(number: c_int, name: *const sockaddr, len: socklen_t) -> c_int {
    // SAFETY: **Caller**.
    let ours = is_ours(number).then(|| unsafe { connect_by(number, (name, len), true) });
    match ours {
        // SAFETY: **Caller**.
        None | Some(Ok(false) | Err(Errno::MOVED)) => unsafe {
            next::connect.get()(number, name, len)
        },
        Some(outcome) => answer::done(outcome.map(drop)),
    }
}

/// Connects a socket of ours; false if it has become the kernel's for this peer.
///
/// # Safety
/// **Caller**.
pub unsafe fn connect_by(
    number: c_int,
    (name, len): (*const sockaddr, socklen_t),
    may_wait: bool,
) -> Result<bool> {
    // SAFETY: **Caller**.
    match unsafe { memory::read_name(name, len) }? {
        Name::Inet(peer, port) if is_left_for_peer(number, (peer, port))? => Ok(false),
        Name::Inet(peer, port) => connect_to(number, (peer, port), may_wait).map(|()| true),
        Name::Unspecified => {
            let mut held = Held::of(number)?;
            let open = held.host().socket(number.cast_unsigned())?;
            held.host().disconnect(&open).map(|()| true)
        }
    }
}

/// What came of a connection that was begun.
///
/// Errors: `AGAIN` as long as nothing has.
pub fn connected(number: c_int) -> Result<()> {
    let mut held = Held::of(number)?;
    let open = held.host().socket(number.cast_unsigned())?;
    held.host().finish_connecting(&open)
}

fn connect_to(number: c_int, (peer, port): (Ipv4Addr, u16), may_wait: bool) -> Result<()> {
    let mut held = Held::of(number)?;
    let open = held.host().socket(number.cast_unsigned())?;
    let pending = match held.host().connect(&open, peer, port) {
        Err(pending @ (Errno::IN_PROGRESS | Errno::ALREADY))
            if may_wait && !open.is_nonblocking() =>
        {
            pending
        }
        done => return done,
    };
    drop(held);
    let way = Way::of(Direction::Send, 0);
    match patiently(number, way, |host, open| host.finish_connecting(open)) {
        Err(Errno::AGAIN) => Err(pending),
        done => done,
    }
}

/// `shutdown(2)`.
#[unsafe(no_mangle)]
pub extern "C" fn shutdown(number: c_int, how: c_int) -> c_int {
    if !is_ours(number) {
        // SAFETY: no memory is passed.
        return unsafe { next::shutdown.get()(number, how) };
    }
    let direction = match how {
        libc::SHUT_RD => Ok(Shutdown::Read),
        libc::SHUT_WR => Ok(Shutdown::Write),
        libc::SHUT_RDWR => Ok(Shutdown::Both),
        _ => Err(Errno::INVALID),
    };
    let shut = direction.and_then(|direction| {
        let mut held = Held::of(number)?;
        let open = held.host().socket(number.cast_unsigned())?;
        held.host().shutdown(&open, direction)
    });
    // SAFETY: no memory is passed.
    answer::done_or(shut, || unsafe { next::shutdown.get()(number, how) })
}

/// Which end of a connection.
enum End {
    Ours,
    Peers,
}

fn name_of(number: c_int, end: End) -> Result<Endpoint> {
    let mut held = Held::of(number)?;
    let open = held.host().socket(number.cast_unsigned())?;
    match end {
        End::Ours => held.host().local(&open),
        End::Peers => held.host().remote(&open),
    }
}

/// `getsockname(2)`.
///
/// # Safety
/// **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getsockname(
    number: c_int,
    at: *mut sockaddr,
    len_at: *mut socklen_t,
) -> c_int {
    if !is_ours(number) {
        // SAFETY: **Caller**.
        return unsafe { next::getsockname.get()(number, at, len_at) };
    }
    let name = name_of(number, End::Ours);
    // SAFETY: **Caller**.
    let told = name.and_then(|name| unsafe { memory::tell_name(at, len_at, name) });
    // SAFETY: **Caller**.
    answer::done_or(told, || unsafe {
        next::getsockname.get()(number, at, len_at)
    })
}

/// `getpeername(2)`.
///
/// # Safety
/// **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getpeername(
    number: c_int,
    at: *mut sockaddr,
    len_at: *mut socklen_t,
) -> c_int {
    if !is_ours(number) {
        // SAFETY: **Caller**.
        return unsafe { next::getpeername.get()(number, at, len_at) };
    }
    let name = name_of(number, End::Peers);
    // SAFETY: **Caller**.
    let told = name.and_then(|name| unsafe { memory::tell_name(at, len_at, name) });
    // SAFETY: **Caller**.
    answer::done_or(told, || unsafe {
        next::getpeername.get()(number, at, len_at)
    })
}

/// `getsockopt(2)`.
///
/// # Safety
/// **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getsockopt(
    number: c_int,
    level: c_int,
    name: c_int,
    value: *mut c_void,
    len_at: *mut socklen_t,
) -> c_int {
    let ours = is_ours(number).then(|| {
        let mut held = Held::of(number)?;
        let open = held.host().socket(number.cast_unsigned())?;
        held.host().option(&open, level, name).transpose()
    });
    match ours {
        // SAFETY: **Caller**.
        None | Some(Ok(None) | Err(Errno::MOVED)) => unsafe {
            next::getsockopt.get()(number, level, name, value, len_at)
        },
        Some(Err(error)) => answer::done(Err(error)),
        // SAFETY: **Caller**.
        Some(Ok(Some(bytes))) => answer::done(unsafe { tell_value(&bytes, value, len_at) }),
    }
}

/// # Safety
/// **Caller**.
unsafe fn tell_value(bytes: &[u8], at: *mut c_void, len_at: *mut socklen_t) -> Result<()> {
    // SAFETY: **Caller**.
    let room = unsafe { len_at.as_mut() }.ok_or(Errno::INVALID)?;
    let shown = bytes
        .len()
        .min(c_int::try_from(*room).map_err(|_| Errno::INVALID)? as usize);
    // SAFETY: **Caller**: there is so much room.
    unsafe {
        at.cast::<u8>()
            .copy_from_nonoverlapping(bytes.as_ptr(), shown)
    };
    *room = shown as socklen_t;
    Ok(())
}

/// Sets an option of which a connection's kernel's socket need not know; false if it has to be asked.
fn set_here(number: c_int, (level, name): (c_int, c_int), value: &[u8]) -> bool {
    if !posix::is_streams_own(level, name) || !is_ours(number) {
        return false;
    }
    let set = Held::of(number).and_then(|mut held| {
        let open = held.host().socket(number.cast_unsigned())?;
        // It may become the kernel's as long as it has no name, with all that was set.
        let is_here = open.is_settled() && open.transport() == Transport::Tcp;
        let set = is_here.then(|| held.host().set_option(&open, level, name, value));
        set.transpose()
    });
    // What is wrong is said on the other way.
    matches!(set, Ok(Some(())))
}

/// `setsockopt(2)`. The kernel's socket says whether the value can be.
///
/// # Safety
/// **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn setsockopt(
    number: c_int,
    level: c_int,
    name: c_int,
    value: *const c_void,
    len: socklen_t,
) -> c_int {
    if len as usize == size_of::<c_int>() {
        // SAFETY: **Caller**.
        let given = unsafe { memory::bytes(value, len as usize) };
        if !given.is_empty() && set_here(number, (level, name), given) {
            return 0;
        }
    }
    // SAFETY: **Caller**.
    let outcome = unsafe { next::setsockopt.get()(number, level, name, value, len) };
    if outcome != 0 || !is_ours(number) || value.is_null() {
        return outcome;
    }
    // SAFETY: **Caller**.
    let given = unsafe { slice::from_raw_parts(value.cast::<u8>(), len as usize) };
    // Where it has no name yet it becomes one that has a filter.
    if posix::is_filter(level, name) && leave_to_kernel(number, |_| true) == Ok(true) {
        return outcome;
    }
    let made = made(number, level, name).map(c_int::to_ne_bytes);
    let set = Held::of(number).and_then(|mut held| {
        let open = held.host().socket(number.cast_unsigned())?;
        let value = made.as_ref().map_or(given, |made| made.as_slice());
        held.host().set_option(&open, level, name, value)
    });
    // SAFETY: **Caller**.
    let again = || unsafe { next::setsockopt.get()(number, level, name, value, len) };
    answer::done_or(set, again)
}

/// What the kernel has made of a number that a program asked for.
fn made(number: c_int, level: c_int, name: c_int) -> Option<c_int> {
    if !posix::is_made(level, name) {
        return None;
    }
    let mut bytes: c_int = 0;
    let mut len = size_of::<c_int>() as socklen_t;
    // SAFETY: both are ours, and as long as is said.
    let outcome = unsafe {
        next::getsockopt.get()(number, level, name, (&raw mut bytes).cast(), &raw mut len)
    };
    (outcome == 0).then_some(bytes)
}
