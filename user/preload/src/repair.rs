//! A connection becomes one of the kernel's, on the socket behind its number (TCP_REPAIR; `docs/tcp-repair.md`).
//!
//! The kernel's socket is made whole first, and stands still like the connection here: what comes for it is dropped, and its peer
//! sends it again. When its frames come there it [goes on](go_on). An end of the connection that is closed is closed by
//! shutdown(2) then: a FIN that was sent is sent again, in its place.

use std::ffi::{c_int, c_void};
use std::mem;
use std::net::{IpAddr, Ipv4Addr};

use libc::{in_addr, sockaddr_in, socklen_t};
use posix::{Endpoint, Errno, Result, State, TcpSnapshot};

use crate::answer;
use crate::next;

/// Options of IPPROTO_TCP (`linux/tcp.h`).
const TCP_REPAIR: c_int = 19;
const TCP_REPAIR_QUEUE: c_int = 20;
const TCP_QUEUE_SEQ: c_int = 21;
const TCP_REPAIR_OPTIONS: c_int = 22;
const TCP_TIMESTAMP: c_int = 24;
const TCP_REPAIR_WINDOW: c_int = 29;
/// Values of TCP_REPAIR: on, off, off without asking the peer.
const ON: c_int = 1;
const OFF: c_int = 0;
const OFF_SILENTLY: c_int = -1;
/// Sietch's own: it waits at the listener of its name.
const TO_LISTENER: c_int = 2;
const RECEIVE_QUEUE: c_int = 1;
const SEND_QUEUE: c_int = 2;
/// Kinds of TCP's options in TCP_REPAIR_OPTIONS.
const OPTION_MSS: u32 = 2;
const OPTION_WINDOW: u32 = 3;
const OPTION_SACK_PERMITTED: u32 = 4;
const OPTION_TIMESTAMP: u32 = 8;

fn last() -> Errno {
    Errno::from_number(answer::errno())
}

fn done(outcome: c_int) -> Result<()> {
    match outcome {
        0 => Ok(()),
        _ => Err(last()),
    }
}

/// Sets an option of the kernel's socket.
///
/// Errors: the kernel's.
pub fn set(number: c_int, level: c_int, name: c_int, value: &[u8]) -> Result<()> {
    let (at, len) = (value.as_ptr().cast::<c_void>(), value.len() as socklen_t);
    // SAFETY: so many bytes are there.
    done(unsafe { next::setsockopt.get()(number, level, name, at, len) })
}

fn set_tcp(number: c_int, name: c_int, value: c_int) -> Result<()> {
    set(number, libc::IPPROTO_TCP, name, &value.to_ne_bytes())
}

/// Whether the kernel's socket stands still, because a process makes it what its own is.
pub fn stands_still(number: c_int) -> bool {
    let mut value: c_int = OFF;
    let mut len = size_of::<c_int>() as socklen_t;
    let at = (&raw mut value).cast();
    // SAFETY: both are ours, and as long as is said.
    let told =
        unsafe { next::getsockopt.get()(number, libc::IPPROTO_TCP, TCP_REPAIR, at, &raw mut len) };
    told == 0 && value == ON
}

/// As bind(2) and connect(2) want a name.
pub fn name_of(end: Endpoint) -> sockaddr_in {
    let host = match end.addr.to_canonical() {
        IpAddr::V4(host) => host,
        IpAddr::V6(_) => Ipv4Addr::UNSPECIFIED,
    };
    // SAFETY: all zeros is a name.
    let mut name: sockaddr_in = unsafe { mem::zeroed() };
    name.sin_family = libc::AF_INET as libc::sa_family_t;
    name.sin_port = end.port.to_be();
    name.sin_addr = in_addr {
        s_addr: u32::from_ne_bytes(host.octets()),
    };
    name
}

const NAME_BYTES: socklen_t = size_of::<sockaddr_in>() as socklen_t;

/// bind(2) of the kernel's socket.
///
/// Errors: the kernel's.
pub fn bind(number: c_int, end: Endpoint) -> Result<()> {
    let name = name_of(end);
    // SAFETY: a name of that size.
    done(unsafe { next::bind.get()(number, (&raw const name).cast(), NAME_BYTES) })
}

/// connect(2) of the kernel's socket.
///
/// Errors: the kernel's.
pub fn connect(number: c_int, end: Endpoint) -> Result<()> {
    let name = name_of(end);
    // SAFETY: a name of that size.
    done(unsafe { next::connect.get()(number, (&raw const name).cast(), NAME_BYTES) })
}

/// Makes the kernel's socket the connection, which stands still.
///
/// Errors: the kernel's; `EPERM` without CAP_NET_ADMIN. The socket is without a connection then.
pub fn restore(number: c_int, from: &TcpSnapshot) -> Result<()> {
    let restored = try_restore(number, from);
    if restored.is_err() {
        set_tcp(number, TCP_REPAIR, OFF_SILENTLY).ok();
    }
    restored
}

fn try_restore(number: c_int, from: &TcpSnapshot) -> Result<()> {
    let (sending, receiving) = (&from.sending, &from.receiving);
    make_room(number, libc::SO_SNDBUFFORCE, libc::SO_SNDBUF, sending.len())?;
    let unread = receiving.unread.len();
    make_room(number, libc::SO_RCVBUFFORCE, libc::SO_RCVBUF, unread)?;
    set_tcp(number, TCP_REPAIR, ON)?;
    set_tcp(number, TCP_REPAIR_QUEUE, RECEIVE_QUEUE)?;
    let first = receiving.nxt.wrapping_sub(unread as u32);
    set_tcp(number, TCP_QUEUE_SEQ, first.cast_signed())?;
    set_tcp(number, TCP_REPAIR_QUEUE, SEND_QUEUE)?;
    set_tcp(
        number,
        TCP_QUEUE_SEQ,
        first_unacknowledged(from).cast_signed(),
    )?;
    bind(number, from.local)?;
    connect(number, from.remote)?;
    let mut agreed = vec![(OPTION_MSS, u32::from(sending.mss))];
    let scales = u32::from(sending.scale) | u32::from(receiving.scale) << 16;
    agreed.push((OPTION_WINDOW, scales));
    agreed.extend(from.has_sack.then_some((OPTION_SACK_PERMITTED, 0)));
    agreed.extend(from.clocks.map(|_| (OPTION_TIMESTAMP, 0)));
    let words: Vec<u8> = agreed.iter().flat_map(pair).collect();
    set(number, libc::IPPROTO_TCP, TCP_REPAIR_OPTIONS, &words)?;
    if let Some(clocks) = from.clocks {
        set_tcp(number, TCP_TIMESTAMP, clocks.own.cast_signed())?;
    }
    fill(number, RECEIVE_QUEUE, &receiving.unread)?;
    fill(number, SEND_QUEUE, &sending.unacked)?;
    let window = [
        sending.wl1,
        sending.window,
        sending.window_max,
        receiving.window,
        receiving.nxt,
    ];
    let window = window.map(u32::to_ne_bytes);
    set(
        number,
        libc::IPPROTO_TCP,
        TCP_REPAIR_WINDOW,
        window.as_flattened(),
    )
}

/// Has a connection of the kernel's, that goes on, wait at the listener of its name instead.
///
/// Errors: the kernel's; it goes on where it is then.
pub fn give_to_listener(number: c_int) -> Result<()> {
    set_tcp(number, TCP_REPAIR, ON)?;
    let given = set_tcp(number, TCP_REPAIR, TO_LISTENER);
    if given.is_err() {
        set_tcp(number, TCP_REPAIR, OFF).ok();
    }
    given
}

fn pair((kind, value): &(u32, u32)) -> [u8; 8] {
    let ([k0, k1, k2, k3], [v0, v1, v2, v3]) = (kind.to_ne_bytes(), value.to_ne_bytes());
    [k0, k1, k2, k3, v0, v1, v2, v3]
}

/// A FIN that the peer has acknowledged is sent once more, and acknowledged again.
fn first_unacknowledged(from: &TcpSnapshot) -> u32 {
    let is_fin_known = from.state == State::FinWait2;
    from.sending.una.wrapping_sub(u32::from(is_fin_known))
}

/// So many bytes are there, which a buffer of the usual size may not hold.
fn make_room(number: c_int, force: c_int, name: c_int, bytes: usize) -> Result<()> {
    let mut room: c_int = 0;
    let mut len = size_of::<c_int>() as socklen_t;
    let at = (&raw mut room).cast();
    // SAFETY: both are ours, and as long as is said.
    done(unsafe { next::getsockopt.get()(number, libc::SOL_SOCKET, name, at, &raw mut len) })?;
    let bytes = c_int::try_from(bytes).unwrap_or(c_int::MAX);
    // The kernel counts twice what it is told, for its own needs.
    match bytes > room / 2 {
        true => set(number, libc::SOL_SOCKET, force, &bytes.to_ne_bytes()),
        false => Ok(()),
    }
}

fn fill(number: c_int, queue: c_int, bytes: &[u8]) -> Result<()> {
    set_tcp(number, TCP_REPAIR_QUEUE, queue)?;
    put(number, bytes)
}

fn put(number: c_int, mut bytes: &[u8]) -> Result<()> {
    while !bytes.is_empty() {
        let (at, len) = (bytes.as_ptr().cast(), bytes.len());
        let (flags, none) = (libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL, std::ptr::null());
        // SAFETY: so many bytes are there, and no name.
        let sent = unsafe { next::sendto.get()(number, at, len, flags, none, 0) };
        let sent = usize::try_from(sent).map_err(|_| last())?;
        bytes = bytes.get(sent..).unwrap_or_default();
    }
    Ok(())
}

/// The connection goes on in the kernel, whose its frames are now.
///
/// Errors: the kernel's; it stands still there then.
pub fn go_on(number: c_int, from: &TcpSnapshot) -> Result<()> {
    // The peer may know of a FIN that the kernel does not know yet: it is not asked before that is sent again.
    let off = if has_ended(from) { OFF_SILENTLY } else { OFF };
    set_tcp(number, TCP_REPAIR, off)
}

fn has_ended(from: &TcpSnapshot) -> bool {
    !matches!(from.state, State::Established | State::CloseWait)
}

/// And says what was not said yet: bytes that were not sent, ends that were closed.
///
/// Errors: the kernel's; nobody can go on with it then.
pub fn catch_up(number: c_int, from: &TcpSnapshot) -> Result<()> {
    put(number, &from.sending.unsent)?;
    let peer_has = matches!(
        from.state,
        State::CloseWait | State::Closing | State::LastAck
    );
    let how = match (has_ended(from), peer_has || from.receiving.is_shut) {
        (true, true) => libc::SHUT_RDWR,
        (true, false) => libc::SHUT_WR,
        (false, true) => libc::SHUT_RD,
        (false, false) => return Ok(()),
    };
    shutdown(number, how)
}

/// Closes ends of a connection.
///
/// Errors: the kernel's.
pub fn shutdown(number: c_int, how: c_int) -> Result<()> {
    // SAFETY: no memory is passed.
    done(unsafe { next::shutdown.get()(number, how) })
}
