//! The program's address, on the link's interface of the kernel's stack (rtnetlink(7)): what goes over to that stack has it there.
//!
//! It stays when the program has ended, for the sockets may go on in others. A route to other networks comes with it, if the
//! program has a gateway.

use std::ffi::{CString, c_int};
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use sietch_io::QueueConfig;

const REQUEST: u16 = (libc::NLM_F_REQUEST | libc::NLM_F_ACK | libc::NLM_F_CREATE) as u16;
/// Bytes of `struct nlmsghdr`, and of an answer that is looked at: the header and an error.
const HEADER_BYTES: usize = 16;
const ANSWER_BYTES: usize = HEADER_BYTES + 4;

/// Gives the interface the address, unless it has it.
///
/// Errors: of the system; `EPERM` without CAP_NET_ADMIN, `ENOBUFS` if the interface has another one.
pub fn ensure(config: &QueueConfig) -> io::Result<()> {
    let name = CString::new(config.link.as_str()).map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY: it is a string that ends.
    let interface = unsafe { libc::if_nametoindex(name.as_ptr()) };
    if interface == 0 {
        return Err(io::ErrorKind::NotFound.into());
    }
    let (host, prefix_len) = (config.address.host(), config.address.prefix_len());
    ask(libc::RTM_NEWADDR, &address(interface, host, prefix_len))?;
    match config.gateway {
        Some(gateway) => ask(libc::RTM_NEWROUTE, &route(interface, gateway)),
        None => Ok(()),
    }
}

/// `struct ifaddrmsg` and its attributes.
fn address(interface: u32, host: Ipv4Addr, prefix_len: u8) -> Vec<u8> {
    let mut body = vec![libc::AF_INET as u8, prefix_len, 0, libc::RT_SCOPE_UNIVERSE];
    body.extend(interface.to_ne_bytes());
    attribute(&mut body, libc::IFA_LOCAL, host.octets());
    attribute(&mut body, libc::IFA_ADDRESS, host.octets());
    body
}

/// `struct rtmsg` of the route to everywhere, and its attributes.
fn route(interface: u32, gateway: Ipv4Addr) -> Vec<u8> {
    let family = libc::AF_INET as u8;
    let (table, protocol) = (libc::RT_TABLE_MAIN, libc::RTPROT_STATIC);
    let (scope, kind) = (libc::RT_SCOPE_UNIVERSE, libc::RTN_UNICAST);
    let mut body = vec![family, 0, 0, 0, table, protocol, scope, kind, 0, 0, 0, 0];
    attribute(&mut body, libc::RTA_GATEWAY, gateway.octets());
    attribute(&mut body, libc::RTA_OIF, interface.to_ne_bytes());
    body
}

/// `struct rtattr` of four bytes.
fn attribute(body: &mut Vec<u8>, kind: u16, value: [u8; 4]) {
    const BYTES: u16 = 8;
    body.extend(BYTES.to_ne_bytes());
    body.extend(kind.to_ne_bytes());
    body.extend(value);
}

/// What is there already is as if it had been made.
fn ask(kind: u16, body: &[u8]) -> io::Result<()> {
    let flags = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
    // SAFETY: no memory is passed.
    let socket = unsafe { libc::syscall(libc::SYS_socket, libc::AF_NETLINK, flags, 0) };
    if socket < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it is nobody else's.
    let socket = unsafe { OwnedFd::from_raw_fd(socket as c_int) };
    let mut message = Vec::new();
    message.extend(((HEADER_BYTES + body.len()) as u32).to_ne_bytes());
    message.extend([kind, REQUEST].map(u16::to_ne_bytes).as_flattened());
    message.extend([0; 8]);
    message.extend(body);
    let (file, none) = (socket.as_raw_fd(), std::ptr::null::<u8>());
    let (at, len) = (message.as_ptr(), message.len());
    // SAFETY: so many bytes are there.
    let sent = unsafe { libc::syscall(libc::SYS_sendto, file, at, len, 0, none, 0) };
    if sent < 0 {
        return Err(io::Error::last_os_error());
    }
    let mut answer = [0_u8; 256];
    let (room, len) = (answer.as_mut_ptr(), answer.len());
    // SAFETY: there is so much room.
    let came = unsafe { libc::syscall(libc::SYS_recvfrom, file, room, len, 0, none, 0) };
    if came < ANSWER_BYTES as libc::c_long {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let [e0, e1, e2, e3] = [16, 17, 18, 19].map(|at| answer[at]);
    match -i32::from_ne_bytes([e0, e1, e2, e3]) {
        0 | libc::EEXIST => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}
